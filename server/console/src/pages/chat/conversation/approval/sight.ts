/** Which cards of questions are in sight, for the bar that tells of those that are not. */
import { type RefObject, useEffect, useSyncExternalStore } from "react";

const inSight = new Set<string>();
const listeners = new Set<() => void>();

function tell(): void {
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Notes whether the card of a question is in sight, while the question waits. */
export function useSight(id: string, card: RefObject<HTMLElement | null>, waits: boolean): void {
  useEffect(() => {
    if (!card.current || !waits) return;
    const observer = new IntersectionObserver((entries) => {
      if (entries.at(-1)?.isIntersecting) inSight.add(id);
      else inSight.delete(id);
      tell();
    });
    observer.observe(card.current);
    return () => {
      observer.disconnect();
      inSight.delete(id);
      tell();
    };
  }, [id, card, waits]);
}

/** True if the card of one of these questions is in sight. */
export function useIsInSight(ids: readonly string[]): boolean {
  return useSyncExternalStore(subscribe, () => ids.some((id) => inSight.has(id)));
}
