import { useTranslation } from "react-i18next";
import type { RunnerFigures } from "@/api/schema";
import { bytes } from "@/format/number";
import { cx } from "@/ui/class";
import { loadOf } from "./load";

/** A runner's load of some seconds ago as three tiny bars; each says its figure. */
export function LoadBars({ figures }: { figures: RunnerFigures }) {
  const { t } = useTranslation("runners");
  const load = loadOf(figures);
  return (
    <dl className="grid grid-cols-[2.5rem_1fr] items-center gap-x-2 text-meta text-muted">
      <Bar filled={load.running} label={t("loadRunning", { count: figures.operations_running })} title={t("loadRunningTitle")} />
      <Bar filled={load.spool} label={t("loadSpool", { size: bytes(figures.spool_bytes) })} title={t("loadSpoolTitle")} />
      <Bar filled={load.free} label={t("loadFree", { size: bytes(figures.disk_free_bytes) })} title={t("loadFreeTitle")} low={load.lowOnDisk} />
    </dl>
  );
}

function Bar({ filled, label, title, low }: { filled: number; label: string; title: string; low?: boolean }) {
  return (
    <div className="contents" title={title}>
      <dt className="sr-only">{title}</dt>
      <span aria-hidden title={title} className="h-1 overflow-hidden rounded-full bg-sunken">
        <span className={cx("block h-full rounded-full", low ? "bg-bad" : "bg-line-strong")} style={{ width: `${Math.round(filled * 100)}%` }} />
      </span>
      <dd title={title} className={cx("truncate tabular-nums", low && "font-medium text-bad")}>
        {label}
      </dd>
    </div>
  );
}
