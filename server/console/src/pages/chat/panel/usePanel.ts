import { useState } from "react";
import { keep, kept } from "@/state/storage";

const NAME = "gantry.panel-open";

/** Whether the panel is open, which this browser remembers, and how to open and close it. */
export function usePanel(): [boolean, (open: boolean) => void] {
  const [open, setOpen] = useState(() => kept(NAME) === "1");
  const change = (wanted: boolean) => {
    keep(NAME, wanted ? "1" : undefined);
    setOpen(wanted);
  };
  return [open, change];
}
