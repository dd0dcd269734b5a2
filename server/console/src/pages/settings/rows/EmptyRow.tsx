import type { ReactNode } from "react";
import { Card } from "@/ui/Page";

/** A list with nothing in it: what would be here, and the one action. */
export function EmptyRow({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <Card className="flex flex-wrap items-center gap-x-6 gap-y-3 px-4 py-4">
      <div className="min-w-0 flex-1 basis-60">
        <p className="font-medium">{title}</p>
        {children && <p className="text-dense text-muted">{children}</p>}
      </div>
      {action}
    </Card>
  );
}
