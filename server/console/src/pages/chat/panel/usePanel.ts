import { useState } from "react";
import { keep, kept } from "@/state/storage";
import { useHasNoRoom } from "../useIsNarrow";

const NAME = "gantry.panel-open";

/**
 * Whether the panel is open, and how to open and close it. Beside the conversation it stays as it was left, which this
 * browser remembers. Where it has no room it would cover the conversation, so there it opens only when it is asked for.
 */
export function usePanel(): [boolean, (open: boolean) => void] {
  const hasNoRoom = useHasNoRoom();
  const [beside, setBeside] = useState(() => kept(NAME) === "1");
  const [over, setOver] = useState(false);
  if (over && !hasNoRoom) setOver(false);
  const change = (wanted: boolean) => {
    if (hasNoRoom) return setOver(wanted);
    keep(NAME, wanted ? "1" : undefined);
    setBeside(wanted);
  };
  return [hasNoRoom ? over : beside, change];
}
