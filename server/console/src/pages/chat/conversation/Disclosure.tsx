import { ChevronRight, type LucideIcon } from "lucide-react";
import type { ReactNode } from "react";
import { cx } from "@/ui/class";

interface DisclosureProps {
  icon: LucideIcon;
  open: boolean;
  onToggle: () => void;
  /** The words of its line. */
  head: ReactNode;
  /** Quieter words that take the room that is left. */
  tail?: ReactNode;
  /** True while it works: a thin line moves below it. */
  works?: boolean;
  children: ReactNode;
}

/** A quiet line that opens to more. */
export function Disclosure({ icon: Icon, open, onToggle, head, tail, works = false, children }: DisclosureProps) {
  return (
    <div className="min-w-0">
      <button
        type="button"
        aria-expanded={open}
        onClick={onToggle}
        className={cx("touchable flex h-7 max-w-full items-center gap-2 rounded-control text-left text-dense hover:text-ink", works && "works")}
      >
        <Icon aria-hidden className="size-4 shrink-0 text-faint" />
        <span className="shrink-0">{head}</span>
        <ChevronRight aria-hidden className={cx("size-3.5 shrink-0 text-faint transition-transform duration-100", open && "rotate-90")} />
        {tail !== undefined && <span className="min-w-0 truncate text-faint">{tail}</span>}
      </button>
      {open && <div className="fade-in mt-1">{children}</div>}
    </div>
  );
}
