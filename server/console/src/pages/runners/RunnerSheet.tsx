import { useNavigate } from "@tanstack/react-router";
import { FolderOpen, SquareTerminal } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { useMe } from "@/api/me";
import type { Runner } from "@/api/schema";
import { moment } from "@/format/time";
import { useModeText } from "@/pages/settings/rows/value-text";
import { Button } from "@/ui/Button";
import { CopyButton } from "@/ui/CopyLine";
import { Dialog } from "@/ui/Dialog";
import { type Deed, deedsOf } from "./actions";
import { IsolationDetails } from "./Isolation";
import { LoadBars } from "./LoadBars";
import { listNames } from "./name";
import { ICONS } from "./RunnerMenu";
import { Running } from "./Running";
import { Marks, State, Trouble } from "./State";
import { UseButton } from "./UseButton";
import { Workspaces } from "./Workspaces";

interface SheetProps {
  runner: Runner;
  onClose: () => void;
  onDeed: (deed: Deed) => void;
}

/** All that is known of a runner, and all that can be done to it. */
export function RunnerSheet({ runner, onClose, onDeed }: SheetProps) {
  const { t } = useTranslation("runners");
  const me = useMe();
  const navigate = useNavigate();
  const search = { runner: runner.name };
  return (
    <Dialog
      open
      onClose={onClose}
      shape="sheet"
      title={runner.name}
      description={
        <span className="flex flex-wrap items-center gap-2">
          <State runner={runner} />
          <Marks runner={runner} />
        </span>
      }
    >
      <div className="flex flex-col gap-6">
        <Trouble runner={runner} />
        {me?.user.role !== "viewer" && (
          <div className="flex flex-wrap items-center gap-2">
            <UseButton runner={runner} primary />
            <Button size="sm" icon={SquareTerminal} onClick={() => void navigate({ to: "/terminal", search })}>
              {t("terminal")}
            </Button>
            <Button size="sm" icon={FolderOpen} onClick={() => void navigate({ to: "/files", search })}>
              {t("files")}
            </Button>
          </div>
        )}
        {runner.pool ? <PoolPart runner={runner} /> : <Workspaces runner={runner} />}
        <Part title={t("runsNow")}>
          {runner.figures && (
            <div className="mb-2 max-w-48">
              <LoadBars figures={runner.figures} />
            </div>
          )}
          <Running runner={runner} />
        </Part>
        <Part title={t("isolation")}>
          <IsolationDetails runner={runner} />
        </Part>
        <Facts runner={runner} />
        <Deeds runner={runner} onDeed={onDeed} />
      </div>
    </Dialog>
  );
}

/** A part of the sheet with its heading. */
export function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <h3 className="mb-1 text-dense font-semibold">{title}</h3>
      {children}
    </section>
  );
}

function PoolPart({ runner }: { runner: Runner }) {
  const { t } = useTranslation("runners");
  const pool = runner.pool;
  if (!pool) return null;
  return (
    <Part title={t("containers")}>
      <p className="text-dense text-muted">{t("poolMeans", { backend: pool.backend })}</p>
      <ul className="mt-1 text-dense">
        {pool.templates.map((template) => (
          <li key={template}>
            <code className="text-code">{template}</code>
            {pool.sudo_templates?.includes(template) && <span className="text-muted"> {t("templateSudo")}</span>}
          </li>
        ))}
      </ul>
    </Part>
  );
}

function Facts({ runner }: { runner: Runner }) {
  const { t, i18n } = useTranslation("runners");
  const mode = useModeText();
  const me = useMe();
  const shared = runner.shared_with_everyone ? t("everyone") : listNames(runner.shared_with ?? [], i18n.language) || t("noOne");
  const facts: [string, ReactNode][] = [
    [t("owner"), runner.owner ? (runner.owner === me?.user.name ? t("ownerYou", { name: runner.owner }) : runner.owner) : t("ownerless")],
    [t("sharedWithLabel"), shared],
    [t("host"), runner.hostname],
    [t("system"), runner.platform],
    [t("software"), runner.version],
  ];
  if (!runner.online && runner.last_seen) facts.push([t("lastSeen"), moment(runner.last_seen, i18n.language)]);
  if (runner.ceiling) facts.push([t("ceiling"), t("ceilingIs", { mode: mode(runner.ceiling) })]);
  for (const [key, value] of Object.entries(runner.labels ?? {})) facts.push([key, value]);
  return (
    <Part title={t("facts")}>
      <dl className="grid grid-cols-[minmax(0,8rem)_minmax(0,1fr)] gap-x-4 gap-y-1 text-dense">
        {facts.map(([name, value], at) => (
          <div key={at} className="contents">
            <dt className="truncate text-muted" title={name}>
              {name}
            </dt>
            <dd className="wrap-anywhere" dir="auto">
              {value}
            </dd>
          </div>
        ))}
        <dt className="self-center text-muted">{t("id")}</dt>
        <dd className="flex items-center gap-1">
          <code className="min-w-0 truncate text-meta">{runner.id}</code>
          <CopyButton text={runner.id} />
        </dd>
      </dl>
    </Part>
  );
}

function Deeds({ runner, onDeed }: { runner: Runner; onDeed: (deed: Deed) => void }) {
  const { t } = useTranslation("runners");
  const deeds = deedsOf(runner, useMe());
  if (deeds.length === 0) return null;
  return (
    <Part title={t("manage")}>
      <div className="mt-2 flex flex-wrap gap-2">
        {deeds.map((deed) => (
          <Button key={deed} size="sm" icon={ICONS[deed]} {...(deed === "remove" ? { className: "text-bad!" } : {})} onClick={() => onDeed(deed)}>
            {t(`${deed}Verb`)}
          </Button>
        ))}
      </div>
    </Part>
  );
}
