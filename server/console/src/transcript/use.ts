/** Hooks for conversations. */

import { useCallback, useMemo, useSyncExternalStore } from "react";
import type { SessionId } from "@/api/schema";
import type { Facts, Item } from "./model";
import type { Snapshot } from "./snapshot";
import { transcriptOf } from "./store";

/** The conversation of a session. The component is painted again at each change of it: at most once per frame. */
export function useTranscript(session: SessionId): Snapshot {
  const transcript = useMemo(() => transcriptOf(session), [session]);
  return useSyncExternalStore(transcript.subscribe, transcript.getSnapshot);
}

/** One fact of a session, such as its to-do list; the component is painted again where that fact changes. */
export function useFact<K extends keyof Facts>(session: SessionId, name: K): Facts[K] {
  const transcript = useMemo(() => transcriptOf(session), [session]);
  const fact = useCallback(() => transcript.getSnapshot().facts[name], [transcript, name]);
  return useSyncExternalStore(transcript.subscribe, fact);
}

/** One item of a session, such as the call of a task; the component is painted again where that item changes. */
export function useItem(session: SessionId, id: string): Item | undefined {
  const transcript = useMemo(() => transcriptOf(session), [session]);
  const item = useCallback(() => transcript.item(id), [transcript, id]);
  return useSyncExternalStore(transcript.subscribe, item);
}
