/** The hook for conversations. */

import { useMemo, useSyncExternalStore } from "react";
import type { SessionId } from "@/api/schema";
import type { Snapshot } from "./snapshot";
import { transcriptOf } from "./store";

/** The conversation of a session. The component is painted again at each change of it: at most once per frame. */
export function useTranscript(session: SessionId): Snapshot {
  const transcript = useMemo(() => transcriptOf(session), [session]);
  return useSyncExternalStore(transcript.subscribe, transcript.getSnapshot);
}
