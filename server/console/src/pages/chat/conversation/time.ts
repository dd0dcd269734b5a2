import { useSyncExternalStore } from "react";
import { serverTime } from "@/state/clock";

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
let now = serverTime();

function subscribe(listener: () => void): () => void {
  now = serverTime();
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = serverTime();
    for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** The server's time, second by second, in milliseconds since 1970. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}
