import { localeOf } from "./locale";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** A size in bytes: `812 B`, `64 KiB`, `1.4 GiB`. */
export function bytes(count: number): string {
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : Number(value.toFixed(1))} ${UNITS[unit]}`;
}

/** A count that may be large, such as tokens: `812`, `12.4K`, `3.1M`; not as Britain writes it, where `3.1m` is three million. */
export function compact(count: number, language: string): string {
  return new Intl.NumberFormat(language, { notation: "compact", maximumFractionDigits: 1 }).format(count);
}

/** An amount in US dollars; small amounts keep two significant digits. */
export function dollars(amount: number, language: string): string {
  const small = amount > 0 && amount < 0.1;
  return new Intl.NumberFormat(localeOf(language), {
    style: "currency",
    currency: "USD",
    currencyDisplay: "narrowSymbol",
    ...(small ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: 2 }),
  }).format(amount);
}
