import { TriangleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { cx } from "./class";

/** Something to heed. It stands out on a ground of its own where the rest is of no use without it. */
export function Note({ children, strong, className }: { children: ReactNode; strong?: boolean; className?: string }) {
  return (
    <p className={cx("flex items-start gap-2 text-dense", strong ? "rounded-control bg-warn-soft px-3 py-2" : "text-muted", className)}>
      <TriangleAlert aria-hidden className="mt-px size-4 shrink-0 text-warn" />
      <span className="min-w-0 wrap-anywhere">{children}</span>
    </p>
  );
}
