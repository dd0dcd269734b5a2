import { expect, test } from "vitest";
import type { ModelUsage } from "@/api/schema";
import { everyDay, rangeOf } from "./days";

const none = { fresh: 0, cached: 0, cache_written: 0, output: 0, thoughts: 0 };

test("days without calls are there with zeros, and today is the last", () => {
  const sum = { calls: 3, cost_micros: 2_500_000, unpriced: 0, tokens: none };
  const usage: ModelUsage = { rows: [{ ...sum, key: { day: "2026-11-29" } }], total: sum };
  const days = everyDay(usage, 3, Date.parse("2026-11-30T05:00:00Z"));
  expect(days.map((day) => [day.calls, day.dollars])).toEqual([
    [0, 0],
    [3, 2.5],
    [0, 0],
  ]);
  expect(days[2]?.at).toBe(Date.parse("2026-11-30T00:00:00Z") / 1000);
});

test("the address names a time that is offered, but for the usual one", () => {
  expect([7, 90, 30, 8, "7", undefined].map(rangeOf)).toEqual([7, 90, undefined, undefined, undefined, undefined]);
});
