import type { LucideIcon } from "lucide-react";
import type { ReactNode } from "react";

/** An empty place: what would be here, and the one action. */
export function Empty({ icon: Icon, title, children, action }: { icon: LucideIcon; title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className="mx-auto flex max-w-96 flex-col items-center px-4 py-12 text-center">
      <Icon aria-hidden className="size-8 text-faint" strokeWidth={1.5} />
      <h2 className="mt-3 font-medium">{title}</h2>
      {children && <p className="mt-1 text-dense text-balance text-muted">{children}</p>}
      {action && <div className="mt-4">{action}</div>}
    </div>
  );
}
