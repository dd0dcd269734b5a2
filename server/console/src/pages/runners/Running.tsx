import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { stopOperation } from "@/api/operations";
import { runningQuery } from "@/api/runners";
import type { Operation, Runner } from "@/api/schema";
import { Button } from "@/ui/Button";
import { ErrorNote } from "@/ui/ErrorNote";
import { Skeleton } from "@/ui/Skeleton";
import { Ago } from "@/ui/Time";
import { sayFailed } from "@/ui/Toast";

/** What runs on a runner now, as far as the person may see it. */
export function Running({ runner }: { runner: Runner }) {
  const { t } = useTranslation("runners");
  const { data, error, refetch } = useQuery(runningQuery(runner.id));
  const all = runner.figures?.operations_running;
  if (error) return <ErrorNote error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton rows={1} className="h-9" />;
  // The figure is some seconds old, and counts those of others.
  const others = all === undefined ? 0 : Math.max(0, all - data.length);
  return (
    <>
      {data.length === 0 && <p className="text-dense text-muted">{others > 0 ? t("othersRun", { count: others }) : t("nothingRuns")}</p>}
      <ul className="flex flex-col">
        {data.map((operation) => (
          <Row key={operation.id} operation={operation} />
        ))}
      </ul>
      {data.length > 0 && others > 0 && <p className="mt-1 text-meta text-muted">{t("othersRunToo", { count: others })}</p>}
    </>
  );
}

function Row({ operation }: { operation: Operation }) {
  const { t } = useTranslation("runners");
  const [asked, setAsked] = useState(false);
  const stop = async () => {
    setAsked(true);
    try {
      await stopOperation(operation.id);
    } catch (error) {
      setAsked(false);
      sayFailed(t("notStopped"), error);
    }
  };
  const stopping = asked || Boolean(operation.cancel_requested_at);
  return (
    <li className="flex items-center gap-2 border-b border-line py-1.5 last:border-b-0">
      <div className="min-w-0 flex-1">
        <code className="block truncate text-code" title={operation.title}>
          {operation.title}
        </code>
        <p className="text-meta text-muted">
          <Ago at={operation.placed_at} />
          <span aria-hidden> · </span>
          {operation.session ? (
            <Link to="/chat/$session" params={{ session: operation.session }} className="underline">
              {t("byAgent")}
            </Link>
          ) : (
            operation.started_by
          )}
        </p>
      </div>
      <Button size="sm" disabled={stopping} onClick={() => void stop()}>
        {stopping ? t("stopping") : t("stop")}
      </Button>
    </li>
  );
}
