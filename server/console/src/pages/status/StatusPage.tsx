import { useQuery } from "@tanstack/react-query";
import { RefreshCw } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { ProblemError } from "@/api/problem";
import { statusQuery } from "@/api/status";
import type { ServerStatus } from "@/api/schema";
import { timeOfDay } from "@/format/time";
import { useLinkState } from "@/live/use";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Dot, type DotState } from "@/ui/Dot";
import { ErrorNote } from "@/ui/ErrorNote";
import { Card, Page, Section } from "@/ui/Page";
import { Skeleton } from "@/ui/Skeleton";
import { Ago } from "@/ui/Time";

/** Whether all is well: this page's connection, the servers, the database, runners and models. */
export function StatusPage() {
  const { t, i18n } = useTranslation("status");
  const status = useQuery(statusQuery);
  const link = useLinkState();
  const isForbidden = status.error instanceof ProblemError && status.error.status === 403;
  return (
    <Page
      title={t("title")}
      meta={status.dataUpdatedAt > 0 && t("asOf", { time: timeOfDay(status.dataUpdatedAt, i18n.language) })}
      actions={
        <Button icon={RefreshCw} busy={status.isFetching} onClick={() => void status.refetch()}>
          {t("askAgain")}
        </Button>
      }
    >
      <Section title={t("page")}>
        <Card>
          <Row state={link.state === "live" ? "good" : "warn"} name={t("connection")}>
            {t(link.state === "live" ? "live" : link.state === "lost" ? "lost" : "connecting")}
          </Row>
        </Card>
      </Section>
      {isForbidden && <p className="text-dense text-muted">{t("notAllowed")}</p>}
      {status.isError && !isForbidden && <ErrorNote error={status.error} title={t("failed")} onRetry={() => void status.refetch()} />}
      {status.isPending && <Skeleton rows={5} className="h-10" />}
      {status.data && <Server status={status.data} />}
    </Page>
  );
}

function Server({ status }: { status: ServerStatus }) {
  const { t, i18n } = useTranslation("status");
  const { database, runners, models } = status;
  const ms = new Intl.NumberFormat(i18n.language, { maximumFractionDigits: 1 }).format(database.answered_us / 1000);
  const troubled = models.cooling_down + models.refused + models.away;
  return (
    <>
      <Section title={t("server")} note={t("version", { version: status.version })}>
        <Card className="divide-y divide-line">
          {status.replicas.map((replica) => (
            <Row key={replica.id} state="good" name={<code className="text-code">{replica.id}</code>} badge={replica.this && <Badge tone="accent">{t("answers")}</Badge>}>
              {t("since")} <Ago at={replica.since} />
            </Row>
          ))}
          <Row state="good" name={t(database.kind)}>
            {t("database", { ms, schema: database.schema })}
          </Row>
        </Card>
      </Section>
      <Section title={t("machines")}>
        <Card className="divide-y divide-line">
          <Row state={runners.online > 0 ? "good" : "off"} name={t("runners")}>
            {t("runnersCount", { online: runners.online, away: runners.away })}
          </Row>
          <Row state={status.operations_open > 0 ? "busy" : "off"} name={t("operations")}>
            {t("operationsCount", { count: status.operations_open })}
          </Row>
        </Card>
      </Section>
      <Section title={t("models")} note={t("modelsNote")}>
        <Card className="divide-y divide-line">
          <Row state={models.ready > 0 ? "good" : "off"} name={t("ready")}>
            {models.ready}
          </Row>
          {troubled > 0 && (
            <>
              {models.cooling_down > 0 && (
                <Row state="warn" name={t("coolingDown")}>
                  {models.cooling_down}
                </Row>
              )}
              {models.refused > 0 && (
                <Row state="bad" name={t("refused")}>
                  {models.refused}
                </Row>
              )}
              {models.away > 0 && (
                <Row state="off" name={t("away")}>
                  {models.away}
                </Row>
              )}
            </>
          )}
        </Card>
      </Section>
    </>
  );
}

function Row({ state, name, badge, children }: { state: DotState; name: ReactNode; badge?: ReactNode; children: ReactNode }) {
  return (
    <div className="flex min-h-11 flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2">
      <Dot state={state} />
      <span className="min-w-0 grow wrap-anywhere">{name}</span>
      {badge}
      <span className="text-dense text-muted tabular-nums">{children}</span>
    </div>
  );
}
