import { useEffect, useState, useSyncExternalStore } from "react";
import { useTranslation } from "react-i18next";
import { ago, moment } from "@/format/time";
import { serverTime } from "@/state/clock";

const MINUTE_MS = 60_000;
let minute = Date.now();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    minute = Date.now();
    for (const each of listeners) each();
  }, MINUTE_MS / 2);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

/** How long ago something was, which keeps up with the time; the exact time is its title. */
export function Ago({ at }: { at: string }) {
  const { i18n } = useTranslation();
  useSyncExternalStore(subscribe, () => minute);
  return (
    <time dateTime={at} title={moment(at, i18n.language)}>
      {ago(at, serverTime(), i18n.language)}
    </time>
  );
}

/** The milliseconds until a moment of the server's, second by second; 0 once it has passed. */
export function useCountdown(until: string | undefined): number {
  const [now, setNow] = useState(serverTime);
  useEffect(() => {
    if (!until) return;
    const each = setInterval(() => setNow(serverTime()), 1000);
    return () => clearInterval(each);
  }, [until]);
  return until ? Math.max(0, Date.parse(until) - now) : 0;
}
