/** The hook for the socket of this tab. */

import { useSyncExternalStore } from "react";
import type { LinkState } from "./link";
import { socket } from "./socket";

/** The state of the connection: live, or lost since when and as of when the page shows things. */
export function useLinkState(): LinkState {
  return useSyncExternalStore(socket.subscribe, socket.getSnapshot);
}
