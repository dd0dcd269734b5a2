import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { ChartColumn } from "lucide-react";
import { lazy, Suspense } from "react";
import { useTranslation } from "react-i18next";
import { isAdmin, useMe } from "@/api/me";
import type { ModelUsage, UsageSum } from "@/api/schema";
import { type UsageBy, usageQuery } from "@/api/usage";
import { compact, dollars } from "@/format/number";
import { Empty } from "@/ui/Empty";
import { ErrorNote } from "@/ui/ErrorNote";
import { Select } from "@/ui/Field";
import { Card, Page, Section } from "@/ui/Page";
import { Skeleton } from "@/ui/Skeleton";
import { RANGES, rangeOf, USUAL_RANGE } from "./days";
import { UsageTable } from "./UsageTable";

const DayChart = lazy(() => import("./DayChart"));

/** What models cost: the person's own calls, or for admins everyone's. The address has the choice. */
export function UsagePage() {
  const { t } = useTranslation("usage");
  const me = useMe();
  const { days = USUAL_RANGE, all: wanted = false } = useSearch({ from: "/frame/usage" });
  const navigate = useNavigate({ from: "/usage" });
  const seesAll = isAdmin(me);
  const all = wanted && seesAll;
  return (
    <Page
      title={t("title")}
      actions={
        <>
          {seesAll && (
            <Select aria-label={t("whose")} value={all ? "all" : "own"} onChange={(event) => void navigate({ search: (before) => ({ ...before, all: event.target.value === "all" || undefined }) })} className="w-auto!">
              <option value="own">{t("own")}</option>
              <option value="all">{t("everyone")}</option>
            </Select>
          )}
          <Select aria-label={t("range")} value={days} onChange={(event) => void navigate({ search: (before) => ({ ...before, days: rangeOf(Number(event.target.value)) }) })} className="w-auto!">
            {RANGES.map((range) => (
              <option key={range} value={range}>
                {t("lastDays", { count: range })}
              </option>
            ))}
          </Select>
        </>
      }
    >
      <Days days={days} all={all} />
      <By by="model" days={days} all={all} />
      {all && <By by="person" days={days} all />}
    </Page>
  );
}

function Days({ days, all }: { days: number; all: boolean }) {
  const { t } = useTranslation("usage");
  const usage = useQuery(usageQuery("day", days, all));
  if (usage.isError) return <ErrorNote error={usage.error} title={t("failed")} onRetry={() => void usage.refetch()} />;
  if (!usage.data) return <Skeleton rows={2} className="h-32" />;
  if (usage.data.total.calls === 0) {
    return (
      <Empty icon={ChartColumn} title={t("nothing")}>
        {t("nothingHint")}
      </Empty>
    );
  }
  return (
    <>
      <Totals total={usage.data.total} />
      <Section title={t("byDay")} note={t("utc")}>
        <Card className="p-4">
          <Suspense fallback={<div className="h-48" />}>
            <DayChart usage={usage.data} days={days} />
          </Suspense>
        </Card>
        <details className="mt-2 text-dense">
          <summary className="text-muted">{t("asTable")}</summary>
          <Card className="mt-2 overflow-x-auto">
            <UsageTable usage={usage.data} by="day" />
          </Card>
        </details>
      </Section>
    </>
  );
}

function By({ by, days, all }: { by: UsageBy; days: number; all: boolean }) {
  const { t } = useTranslation("usage");
  const usage: ModelUsage | undefined = useQuery(usageQuery(by, days, all)).data;
  if (!usage || usage.rows.length === 0) return null;
  return (
    <Section title={t(by === "model" ? "byModel" : "byPerson")}>
      <Card className="overflow-x-auto">
        <UsageTable usage={usage} by={by} />
      </Card>
    </Section>
  );
}

function Totals({ total }: { total: UsageSum }) {
  const { t, i18n } = useTranslation("usage");
  const { fresh, cached, cache_written, output } = total.tokens;
  const input = fresh + cached + cache_written;
  const figures = [
    { name: t("cost"), value: dollars(total.cost_micros / 1e6, i18n.language), note: total.unpriced > 0 ? t("unpriced", { count: total.unpriced }) : "" },
    { name: t("calls"), value: compact(total.calls, i18n.language), note: "" },
    { name: t("input"), value: compact(input, i18n.language), note: input > 0 ? t("cachedShare", { percent: Math.round((cached / input) * 100) }) : "" },
    { name: t("output"), value: compact(output, i18n.language), note: "" },
  ];
  return (
    <dl className="mb-8 grid grid-cols-2 gap-3 md:grid-cols-4">
      {figures.map((figure) => (
        <Card key={figure.name} className="px-4 py-3">
          <dt className="text-meta text-muted">{figure.name}</dt>
          <dd className="text-title font-semibold tabular-nums">{figure.value}</dd>
          <dd className="min-h-4 text-meta text-muted">{figure.note}</dd>
        </Card>
      ))}
    </dl>
  );
}
