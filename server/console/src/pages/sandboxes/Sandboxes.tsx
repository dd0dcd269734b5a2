import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Container, Plus, Server } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { mayWork, useMe } from "@/api/me";
import { useRunners } from "@/api/runners";
import { sandboxesQuery } from "@/api/sandboxes";
import { useRowKeys } from "@/pages/runners/keys";
import { Button } from "@/ui/Button";
import { Empty } from "@/ui/Empty";
import { ErrorNote } from "@/ui/ErrorNote";
import { Input } from "@/ui/Field";
import { Card, Page } from "@/ui/Page";
import { Skeleton } from "@/ui/Skeleton";
import { filterSandboxes } from "./limits";
import { MakeDialog } from "./MakeDialog";
import { SandboxRow } from "./SandboxRow";
import { SandboxSheet } from "./SandboxSheet";

/** Rows that are shown at first, and each time that more are asked for. */
const STEP = 50;

/** Fewer rows than this need no search. */
const SEARCH_FROM = 6;

/** The containers that pools have made: the person's own, and those of all people for admins. */
export function Sandboxes() {
  const { t } = useTranslation("sandboxes");
  const me = useMe();
  const search = useSearch({ from: "/frame/sandboxes" });
  const navigate = useNavigate();
  const { data, error, refetch } = useQuery(sandboxesQuery);
  const runners = useRunners();
  const input = useRef<HTMLInputElement>(null);
  const [making, setMaking] = useState(false);
  const [typed, setTyped] = useState(search.search ?? "");
  const [shown, setShown] = useState(STEP);
  useRowKeys(input);
  const go = (change: { search?: string | undefined; sandbox?: string | undefined }, replace = false) =>
    void navigate({ to: "/sandboxes", search: (before) => ({ ...before, ...change }), replace });
  const all = data?.sandboxes;
  const found = useMemo(() => filterSandboxes(all ?? [], typed), [all, typed]);
  const pools = useMemo(() => {
    const own = new Set(all?.filter((one) => one.owner === me?.user.name).map((one) => one.runner));
    return runners?.filter((runner) => runner.pool && !own.has(runner.id)) ?? [];
  }, [runners, all, me]);
  const opened = all?.find((one) => one.id === search.sandbox);
  const make = pools.length > 0 && me?.user.role !== "viewer" && (
    <Button look="primary" icon={Plus} onClick={() => setMaking(true)}>
      {t("make")}
    </Button>
  );
  return (
    <Page
      wide
      title={t("title")}
      meta={all && all.length > 0 && t("count", { count: all.length })}
      actions={
        <>
          <Link to="/runners" className="touchable inline-flex h-8 items-center gap-1.5 rounded-control px-3 font-medium text-muted hover:bg-hover hover:text-ink">
            <Server aria-hidden className="size-4" />
            {t("runners")}
          </Link>
          {all && all.length > 0 && make}
        </>
      }
    >
      {error && <ErrorNote error={error} onRetry={() => void refetch()} className="mb-4" />}
      {!all && !error && <Skeleton rows={4} className="h-14" />}
      {all?.length === 0 && (
        <Card>
          <Empty icon={Container} title={t("emptyTitle")} action={make}>
            {mayWork(me) ? t(pools.length > 0 ? "emptyWithPools" : "emptyWhy") : t("emptyViewer")}
          </Empty>
        </Card>
      )}
      {all && all.length > 0 && (
        <>
          {(all.length >= SEARCH_FROM || typed !== "") && (
            <Input
              ref={input}
              type="search"
              className="mb-3 md:max-w-72"
              aria-label={t("filter")}
              placeholder={t("filter")}
              maxLength={200}
              value={typed}
              onChange={(event) => {
                setTyped(event.target.value);
                setShown(STEP);
                go({ search: event.target.value || undefined }, true);
              }}
            />
          )}
          <Card className="overflow-hidden">
            <ul>
              {found.slice(0, shown).map((sandbox) => (
                <SandboxRow key={sandbox.id} sandbox={sandbox} onOpen={() => go({ sandbox: sandbox.id })} />
              ))}
            </ul>
            {found.length === 0 && <p className="px-4 py-6 text-center text-dense text-muted">{t("nothingFound")}</p>}
          </Card>
          {found.length > shown && (
            <div className="mt-3 flex justify-center">
              <Button onClick={() => setShown(shown + STEP)}>{t("showMore", { ns: "common" })}</Button>
            </div>
          )}
          {data?.cut && <p className="mt-2 text-meta text-muted">{t("cut")}</p>}
        </>
      )}
      {opened && <SandboxSheet sandbox={opened} onClose={() => go({ sandbox: undefined })} />}
      {making && <MakeDialog pools={pools} onClose={() => setMaking(false)} />}
    </Page>
  );
}
