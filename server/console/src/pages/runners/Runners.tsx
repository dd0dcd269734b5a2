import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Container, Plus, Server } from "lucide-react";
import { useCallback, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { useMe } from "@/api/me";
import { runnersQuery } from "@/api/runners";
import type { Runner } from "@/api/schema";
import { Button } from "@/ui/Button";
import { Empty } from "@/ui/Empty";
import { ErrorNote } from "@/ui/ErrorNote";
import { Card, Page, Section } from "@/ui/Page";
import { Skeleton } from "@/ui/Skeleton";
import type { Deed } from "./actions";
import { DeedDialog } from "./Deeds";
import { EnrolDialog, FirstMachine } from "./enrol/EnrolDialog";
import { useEnrolment } from "./enrol/useEnrolment";
import { InUse } from "./InUse";
import { RunnerList } from "./RunnerList";
import { RunnerRow } from "./RunnerRow";
import { RunnerSheet } from "./RunnerSheet";

/** The machines on which the person's agents work: which is in use, how each is, and what can be done to it. */
export function Runners() {
  const { t } = useTranslation("runners");
  const me = useMe();
  const search = useSearch({ from: "/frame/runners" });
  const navigate = useNavigate();
  const { data, error, refetch } = useQuery(runnersQuery);
  const [deed, setDeed] = useState<{ deed: Deed; id: string }>();
  const go = useCallback(
    (change: { runner?: string | undefined; enrol?: 1 | undefined }) => void navigate({ to: "/runners", search: (before) => ({ ...before, ...change }) }),
    [navigate],
  );
  const open = useCallback((runner: Runner) => go({ runner: runner.id }), [go]);
  const ask = useCallback((runner: Runner, one: Deed) => setDeed({ deed: one, id: runner.id }), []);
  const enrolment = useEnrolment();
  const closeEnrolment = () => {
    enrolment.putAway();
    go({ enrol: undefined });
  };
  const viewer = me?.user.role === "viewer";
  const none = data?.runners.length === 0;
  const online = data?.runners.filter((runner) => runner.online).length ?? 0;
  const find = (id: string | undefined) => data?.runners.find((runner) => runner.id === id);
  const opened = find(search.runner);
  const asked = find(deed?.id);
  const active = find(me?.active_runner ?? undefined);
  const others = useMemo(() => data?.runners.filter((runner) => runner !== active) ?? [], [data, active]);
  return (
    <Page
      wide
      title={t("title")}
      meta={data && data.runners.length > 0 && t("count", { count: data.runners.length, online })}
      actions={
        <>
          <Link to="/sandboxes" className="touchable inline-flex h-8 items-center gap-1.5 rounded-control px-3 font-medium text-muted hover:bg-hover hover:text-ink">
            <Container aria-hidden className="size-4" />
            {t("sandboxes")}
          </Link>
          {!none && !viewer && (
            <Button look="primary" icon={Plus} onClick={() => go({ enrol: 1 })}>
              {t("addMachine")}
            </Button>
          )}
        </>
      }
    >
      {error && <ErrorNote error={error} onRetry={() => void refetch()} className="mb-4" />}
      {!data && !error && <Skeleton rows={4} className="h-16" />}
      {none && viewer && (
        <Empty icon={Server} title={t("emptyTitle")}>
          {t("viewerWhy")}
        </Empty>
      )}
      {none && !viewer && !search.enrol && !enrolment.made && <FirstMachine enrolment={enrolment} />}
      {data && me && data.runners.length > 0 && (
        <>
          <Section title={t("inUseTitle")} note={active && <InUse me={me} runner={active} choice />}>
            {active ? (
              <Card className="overflow-hidden">
                <ul>
                  <RunnerRow runner={active} onOpen={open} onDeed={ask} />
                </ul>
              </Card>
            ) : (
              <InUse me={me} runner={undefined} choice />
            )}
          </Section>
          <RunnerList runners={others} cut={data.cut} onOpen={open} onDeed={ask} />
        </>
      )}
      {opened && <RunnerSheet runner={opened} onClose={() => go({ runner: undefined })} onDeed={(one) => ask(opened, one)} />}
      {deed && asked && <DeedDialog key={`${deed.deed} ${deed.id}`} deed={deed.deed} runner={asked} onClose={() => setDeed(undefined)} />}
      {!viewer && (search.enrol || enrolment.made) && <EnrolDialog enrolment={enrolment} onClose={closeEnrolment} />}
    </Page>
  );
}
