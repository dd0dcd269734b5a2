import type { ModelUsage } from "@/api/schema";

const DAY_MS = 86_400_000;

/** The times that are offered, in days. */
export const RANGES = [7, 30, 90] as const;
export const USUAL_RANGE = 30;

/** One of the times as an address has it: the usual one is left out, and so is what is none. */
export function rangeOf(value: unknown): number | undefined {
  return value === USUAL_RANGE ? undefined : RANGES.find((range) => range === value);
}

/** A day of the chart; `at` is its beginning in UTC, in seconds since 1970. */
export interface DayOfUsage {
  at: number;
  dollars: number;
  calls: number;
}

/** Every day of the time, the oldest first: days without calls are there with zeros. `now` is in milliseconds. */
export function everyDay(usage: ModelUsage, days: number, now: number): DayOfUsage[] {
  const rows = new Map(usage.rows.map((row) => [row.key.day, row]));
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  return Array.from({ length: days }, (_, index) => {
    const at = today - (days - 1 - index) * DAY_MS;
    const row = rows.get(new Date(at).toISOString().slice(0, 10));
    return { at: at / 1000, dollars: (row?.cost_micros ?? 0) / 1e6, calls: row?.calls ?? 0 };
  });
}
