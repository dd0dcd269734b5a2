/** Hooks for the socket of this tab. */

import { useEffect, useRef, useSyncExternalStore } from "react";
import type { Topic } from "@/api/schema";
import type { LinkState } from "./link";
import { type ChangeListener, socket } from "./socket";

/** The state of the connection: live, or lost since when and as of when the page shows things. */
export function useLinkState(): LinkState {
  return useSyncExternalStore(socket.subscribe, socket.getSnapshot);
}

/** Calls back when one of these lists may be different; the list of topics must be the same array each time. */
export function useChanged(topics: readonly Topic[], listener: ChangeListener): void {
  const newest = useRef(listener);
  useEffect(() => {
    newest.current = listener;
  });
  useEffect(() => socket.onChanged(topics, (changed, sessions) => newest.current(changed, sessions)), [topics]);
}
