/** A price in millionths of a US dollar, with as many digits as it has: `$3`, `$0.25`. */
export function price(micros: number, language: string): string {
  return new Intl.NumberFormat(language, { style: "currency", currency: "USD", currencyDisplay: "narrowSymbol", minimumFractionDigits: 0, maximumFractionDigits: 6 }).format(micros / 1_000_000);
}
