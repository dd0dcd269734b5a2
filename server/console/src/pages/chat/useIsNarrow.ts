import { useSyncExternalStore } from "react";

/** The same width as `--breakpoint-md` of the tokens. */
const NARROW = matchMedia("(width < 720px)");

/** Below this width the panel has no room beside the conversation. */
const NO_ROOM = matchMedia("(width < 1080px)");

/** True while the window is too narrow for two columns, as on a phone. */
export function useIsNarrow(): boolean {
  return useMatches(NARROW);
}

/** True while the panel has no room beside the conversation. */
export function useHasNoRoom(): boolean {
  return useMatches(NO_ROOM);
}

function useMatches(query: MediaQueryList): boolean {
  return useSyncExternalStore(
    (listener) => {
      query.addEventListener("change", listener);
      return () => query.removeEventListener("change", listener);
    },
    () => query.matches,
  );
}
