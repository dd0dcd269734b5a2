import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { isAdmin, useMe } from "@/api/me";
import { changesQuery, removeSandbox } from "@/api/sandboxes";
import type { Sandbox } from "@/api/schema";
import { moment } from "@/format/time";
import { told } from "@/i18n/told";
import { Button } from "@/ui/Button";
import { Confirm } from "@/ui/Confirm";
import { CopyButton } from "@/ui/CopyLine";
import { Dialog } from "@/ui/Dialog";
import { ErrorNote } from "@/ui/ErrorNote";
import { Skeleton } from "@/ui/Skeleton";
import { Ago } from "@/ui/Time";
import { say } from "@/ui/Toast";
import { ChangeDialog } from "./ChangeDialog";
import { useLimits, useNetwork } from "./Limits";
import { Power } from "./Power";
import { State } from "./State";

/** All that is known of a sandbox, its recent changes, and all that can be done to it. */
export function SandboxSheet({ sandbox, onClose }: { sandbox: Sandbox; onClose: () => void }) {
  const { t } = useTranslation("sandboxes");
  const me = useMe();
  const [asked, setAsked] = useState<"change" | "remove">();
  const may = me !== undefined && me.user.role !== "viewer" && (isAdmin(me) || sandbox.owner === me.user.name);
  const name = t("ofOn", { owner: sandbox.owner, runner: sandbox.runner_name });
  return (
    <Dialog
      open
      onClose={onClose}
      shape="sheet"
      title={name}
      description={
        <span className="flex flex-wrap items-center gap-x-1.5">
          <State state={sandbox.state} />
          <span aria-hidden>·</span>
          <Ago at={sandbox.since} />
        </span>
      }
    >
      <div className="flex flex-col gap-6">
        {sandbox.reason && <p className={sandbox.state === "failed" ? "text-dense wrap-anywhere text-bad" : "text-dense wrap-anywhere"}>{told(sandbox.reason)}</p>}
        {may && (
          <div className="flex flex-wrap gap-2">
            <Power sandbox={sandbox} />
            <Button size="sm" onClick={() => setAsked("change")}>
              {t("changeVerb")}
            </Button>
            <Button size="sm" className="text-bad!" onClick={() => setAsked("remove")}>
              {t("removeVerb")}
            </Button>
          </div>
        )}
        <Facts sandbox={sandbox} />
        <Changes sandbox={sandbox} />
      </div>
      {asked === "change" && <ChangeDialog sandbox={sandbox} onClose={() => setAsked(undefined)} />}
      <Confirm
        open={asked === "remove"}
        onClose={() => setAsked(undefined)}
        danger
        title={t("removeTitle")}
        verb={t("remove", { ns: "common" })}
        onConfirm={async () => {
          await removeSandbox(sandbox.id);
          say(t("removed"));
        }}
      >
        {t("removeWhy", { owner: sandbox.owner, runner: sandbox.runner_name })}
      </Confirm>
    </Dialog>
  );
}

function Facts({ sandbox }: { sandbox: Sandbox }) {
  const { t } = useTranslation("sandboxes");
  const facts: [string, ReactNode][] = [
    [t("runner"), sandbox.runner_name],
    [t("owner"), sandbox.owner],
    [t("template"), sandbox.template],
    [t("rights"), sandbox.privilege === "sudo" ? t("sudo") : t("strict")],
    [t("limits"), useLimits(sandbox)],
    [t("network"), useNetwork(sandbox)],
    [t("idle"), t("idleIs", { count: Number((sandbox.idle_for_ms / 60_000).toFixed(1)) })],
  ];
  return (
    <dl className="grid grid-cols-[minmax(0,7rem)_minmax(0,1fr)] gap-x-4 gap-y-1 text-dense">
      {facts.map(([name, value]) => (
        <div key={name} className="contents">
          <dt className="text-muted">{name}</dt>
          <dd className="wrap-anywhere" dir="auto">
            {value}
          </dd>
        </div>
      ))}
      <dt className="self-center text-muted">{t("id")}</dt>
      <dd className="flex items-center gap-1">
        <code className="min-w-0 truncate text-meta">{sandbox.id}</code>
        <CopyButton text={sandbox.id} />
      </dd>
    </dl>
  );
}

function Changes({ sandbox }: { sandbox: Sandbox }) {
  const { t, i18n } = useTranslation("sandboxes");
  const { data, error, refetch } = useQuery(changesQuery(sandbox.id));
  return (
    <section>
      <h3 className="mb-1 text-dense font-semibold">{t("changes")}</h3>
      {error && <ErrorNote error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Skeleton rows={2} className="h-6" />}
      {data?.length === 0 && <p className="text-dense text-muted">{t("noChanges")}</p>}
      <ol>
        {[...(data ?? [])].reverse().map((change, at) => (
          <li key={`${change.at} ${at}`} className="border-b border-line py-1.5 text-dense last:border-b-0">
            <div className="flex items-center gap-2">
              <State state={change.state} />
              <time dateTime={change.at} className="ml-auto text-meta text-muted tabular-nums">
                {moment(change.at, i18n.language)}
              </time>
            </div>
            {change.reason && <p className="wrap-anywhere text-muted">{told(change.reason)}</p>}
          </li>
        ))}
      </ol>
    </section>
  );
}
