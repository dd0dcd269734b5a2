import { useSyncExternalStore } from "react";

/** The same width as `--breakpoint-md` of the tokens. */
const NARROW = matchMedia("(width < 720px)");

/** True while the window is too narrow for two columns, as on a phone. */
export function useIsNarrow(): boolean {
  return useSyncExternalStore(
    (listener) => {
      NARROW.addEventListener("change", listener);
      return () => NARROW.removeEventListener("change", listener);
    },
    () => NARROW.matches,
  );
}
