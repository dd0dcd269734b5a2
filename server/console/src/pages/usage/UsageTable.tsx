import { useTranslation } from "react-i18next";
import type { ModelUsage, UsageKey } from "@/api/schema";
import type { UsageBy } from "@/api/usage";
import { compact, dollars } from "@/format/number";
import { cx } from "@/ui/class";

/** Sums by one property, with a bar for each one's part of the cost, or of the calls where nothing has a price. */
export function UsageTable({ usage, by }: { usage: ModelUsage; by: UsageBy }) {
  const { t, i18n } = useTranslation("usage");
  const cost = usage.rows.some((row) => row.cost_micros > 0);
  const weight = (row: ModelUsage["rows"][number]) => (cost ? row.cost_micros : row.calls);
  const most = Math.max(1, ...usage.rows.map(weight));
  const cell = "px-3 py-2";
  const number = cx(cell, "text-right tabular-nums whitespace-nowrap");
  return (
    <table className="w-full text-left text-dense">
      <thead className="border-b border-line text-meta text-muted">
        <tr>
          <th className={cx(cell, "font-medium")}>{t(by)}</th>
          <th className={cx(cell, "w-1/4 max-md:hidden")} />
          <th className={cx(number, "font-medium")}>{t("calls")}</th>
          <th className={cx(number, "font-medium max-md:hidden")}>{t("input")}</th>
          <th className={cx(number, "font-medium max-md:hidden")}>{t("output")}</th>
          <th className={cx(number, "font-medium")}>{t("cost")}</th>
        </tr>
      </thead>
      <tbody className="divide-y divide-line">
        {usage.rows.map((row) => (
          <tr key={keyOf(row.key)}>
            <td className={cx(cell, "max-w-56 truncate")}>
              {nameOf(row.key)}
              {row.key.provider && <span className="text-faint"> · {row.key.provider}</span>}
            </td>
            <td aria-hidden className={cx(cell, "max-md:hidden")}>
              <div className="h-1.5 rounded-full bg-sunken">
                <div className="h-full rounded-full bg-accent" style={{ width: `${(weight(row) / most) * 100}%` }} />
              </div>
            </td>
            <td className={number}>{row.calls.toLocaleString(i18n.language)}</td>
            <td className={cx(number, "max-md:hidden")}>{compact(row.tokens.fresh + row.tokens.cached + row.tokens.cache_written, i18n.language)}</td>
            <td className={cx(number, "max-md:hidden")}>{compact(row.tokens.output, i18n.language)}</td>
            <td className={number}>{row.calls > 0 && row.unpriced === row.calls ? t("noPrice") : dollars(row.cost_micros / 1e6, i18n.language)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function keyOf(key: UsageKey): string {
  return [key.day, key.model, key.provider, key.person].filter(Boolean).join(" ");
}

function nameOf(key: UsageKey): string {
  return key.day ?? key.model ?? key.name ?? key.person ?? "";
}
