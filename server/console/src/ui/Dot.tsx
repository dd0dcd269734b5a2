import { cx } from "./class";

export type DotState = "good" | "warn" | "bad" | "off" | "busy";

const LOOKS: Record<DotState, string> = {
  good: "bg-good",
  warn: "bg-warn",
  bad: "bg-bad",
  busy: "bg-accent",
  // Hollow: what is off differs by its shape, not by colour alone.
  off: "border-2 border-line-strong",
};

/** The small sign of a state. Words stand beside it; it says nothing by itself. */
export function Dot({ state, className }: { state: DotState; className?: string }) {
  return <span aria-hidden className={cx("inline-block size-2 shrink-0 rounded-full", LOOKS[state], className)} />;
}
