import i18next from "i18next";
import { localeOf } from "./locale";

const UNITS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3600],
  ["minute", 60],
];

/** An age in the largest unit that fits, such as “3 hours ago”; “now” for less than a minute. `now` is in milliseconds. */
export function ago(at: string, now: number, language: string): string {
  const format = new Intl.RelativeTimeFormat(localeOf(language), { numeric: "auto", style: "short" });
  const seconds = Math.round((Date.parse(at) - now) / 1000);
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size) return format.format(Math.trunc(seconds / size), unit);
  }
  return format.format(0, "second");
}

/** A date with its time to the second, in this browser's zone. */
export function moment(at: string, language: string): string {
  return new Intl.DateTimeFormat(localeOf(language), { dateStyle: "medium", timeStyle: "medium" }).format(new Date(at));
}

/** A time of day with seconds. `at` is in milliseconds since 1970, or RFC 3339. */
export function timeOfDay(at: number | string, language: string): string {
  return new Intl.DateTimeFormat(localeOf(language), { timeStyle: "medium" }).format(new Date(at));
}

/** A duration in milliseconds: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`, `6 d 23 h`. */
export function duration(ms: number): string {
  const seconds = ms / 1000;
  if (seconds < 60) return i18next.t("common:seconds", { seconds: seconds < 10 ? seconds.toFixed(1) : Math.floor(seconds) });
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return i18next.t("common:minutes", { minutes, seconds: Math.floor(seconds % 60) });
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return i18next.t("common:hours", { hours, minutes: minutes % 60 });
  return i18next.t("common:days", { days: Math.floor(hours / 24), hours: hours % 24 });
}
