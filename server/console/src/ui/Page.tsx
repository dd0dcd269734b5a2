import type { ReactNode } from "react";
import { useTitle } from "@/state/title";
import { cx } from "./class";

/** A page beside the rail: its title, its actions, and its content, which scrolls. */
export function Page({ title, meta, actions, children, wide }: { title: string; meta?: ReactNode; actions?: ReactNode; children: ReactNode; wide?: boolean }) {
  useTitle(title);
  return (
    <main className="flex min-h-0 min-w-0 flex-1 flex-col overflow-y-auto">
      <div className={cx("mx-auto w-full px-4 pt-6 pb-12 md:px-8", wide ? "max-w-6xl" : "max-w-4xl")}>
        <header className="mb-6 flex flex-wrap items-center gap-x-3 gap-y-2">
          <h1 className="text-title font-semibold">{title}</h1>
          {meta && <span className="text-dense text-muted">{meta}</span>}
          {actions && <div className="ml-auto flex flex-wrap gap-2">{actions}</div>}
        </header>
        {children}
      </div>
    </main>
  );
}

/** A group of rows with a heading. */
export function Section({ title, note, actions, children }: { title: string; note?: ReactNode; actions?: ReactNode; children: ReactNode }) {
  return (
    <section className="mb-8">
      <header className={cx("mb-2 flex flex-wrap gap-2", note ? "items-end" : "items-center")}>
        <div className={cx("min-w-0 flex-1", note ? "basis-72" : "")}>
          <h2 className="font-semibold">{title}</h2>
          {note && <p className="text-dense text-muted">{note}</p>}
        </div>
        {actions}
      </header>
      {children}
    </section>
  );
}

/** A box around rows or a form. */
export function Card({ children, className }: { children: ReactNode; className?: string }) {
  return <div className={cx("rounded-card border border-line bg-surface", className)}>{children}</div>;
}
