import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { extensionsQuery, foundExtensionsQuery, trustExtension } from "@/api/extensions";
import { mayWork, useMe } from "@/api/me";
import type { Provenance } from "@/api/schema";
import { told } from "@/i18n/told";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Card } from "@/ui/Page";
import { ErrorNote } from "@/ui/ErrorNote";
import { Skeleton } from "@/ui/Skeleton";
import { EmptyRow } from "../rows/EmptyRow";
import { Dots, RefusedNote, Rows } from "../rows/Row";
import { type FoundFile, type FoundKind, type FoundThing, filesOf, isOnRunner, shadowedIn, thingsOf } from "./about";
import { KINDS, short } from "./look";
import { SignInDialog } from "./SignInDialog";

const ORDER: readonly FoundKind[] = ["skill", "agent", "hook", "mcp", "plugin"];
const GROUPS = { skill: "groupSkills", agent: "groupAgents", hook: "groupHooks", mcp: "groupServers", plugin: "groupPlugins" } as const satisfies Record<FoundKind, string>;

/** The state of a tool server: the number of its tools, or why it has none. */
interface ServerState {
  readonly tools: number;
  readonly failed: string | null;
}

/** What the last turn of a session found: files that wait for trust with all that they would do, what counts, and what does not and why. `servers` are the states of tool servers, where they are known. */
export function Found({ session, servers }: { session: string; servers?: ReadonlyMap<string, ServerState> }) {
  const { t } = useTranslation("settings");
  const found = useQuery(foundExtensionsQuery(session));
  const registered = useQuery(extensionsQuery).data?.extensions ?? [];
  if (found.error && !found.data) return <ErrorNote error={found.error} onRetry={() => void found.refetch()} />;
  if (!found.data) return <Skeleton rows={3} />;
  const things = thingsOf(found.data);
  const files = filesOf(things);
  const counts = things.filter(({ kind, from }) => !from || kind === "skill" || kind === "agent" || from.trusted);
  const shadowed = shadowedIn(counts, registered);
  const unread = found.data.unread ?? [];
  if (things.length === 0 && unread.length === 0) return <EmptyRow title={t("foundNothing")}>{t("foundNothingWhy")}</EmptyRow>;
  return (
    <div className="flex flex-col gap-5">
      {files.length > 0 && (
        <Group title={t("groupFiles")} note={t("groupFilesNote")}>
          <div className="flex flex-col gap-3">
            {files.map((file) => (
              <FileCard key={`${file.path} ${file.digest}`} session={session} file={file} />
            ))}
          </div>
        </Group>
      )}
      {ORDER.map((kind) => {
        const ofKind = counts.filter((thing) => thing.kind === kind);
        return (
          ofKind.length > 0 && (
            <Group key={kind} title={t(GROUPS[kind])} count={ofKind.length}>
              <Rows>
                {ofKind.map((thing, index) => (
                  <ThingRow key={`${thing.name} ${index}`} session={session} thing={thing} state={kind === "mcp" ? servers?.get(thing.name) : undefined} />
                ))}
              </Rows>
            </Group>
          )
        );
      })}
      {(shadowed.length > 0 || unread.length > 0) && (
        <Group title={t("groupUnused")} count={shadowed.length + unread.length}>
          <Rows>
            {shadowed.map(({ extension, by }) => (
              <div key={extension.id} className="px-4 py-2.5">
                <p className="flex flex-wrap items-center gap-x-2">
                  <span className="font-medium wrap-anywhere">{extension.name}</span>
                  <Badge>{t(KINDS[extension.kind].word)}</Badge>
                </p>
                <p className="text-dense text-muted">
                  {t("shadowedBy", { layer: t(LAYERS[extension.layer]) })} <Whence from={by} />
                </p>
              </div>
            ))}
            {unread.map((why, index) => (
              <p key={index} className="px-4 py-2.5 text-dense text-warn wrap-anywhere">
                {told(why)}
              </p>
            ))}
          </Rows>
        </Group>
      )}
    </div>
  );
}

function Group({ title, note, count, children }: { title: string; note?: string; count?: number; children: ReactNode }) {
  return (
    <section>
      <h3 className="mb-1.5 text-dense font-medium">
        {title} {count !== undefined && <span className="font-normal text-faint tabular-nums">{count}</span>}
      </h3>
      {note && <p className="-mt-1 mb-2 text-dense text-muted">{note}</p>}
      {children}
    </section>
  );
}

const LAYERS = { tenant: "layerTenant", user: "layerUser", project: "layerProject", local: "layerLocal" } as const;

/** The place that a thing comes from. */
function Whence({ from }: { from: Provenance | undefined }) {
  const { t } = useTranslation("settings");
  if (!from) return <>{t("layerGantry")}</>;
  return isOnRunner(from) ? <code className="wrap-anywhere">{from.at}</code> : <>{t(LAYERS[from.layer])}</>;
}

function ThingRow({ session, thing: { kind, name, about, from }, state }: { session: string; thing: FoundThing; state: ServerState | undefined }) {
  const { t } = useTranslation("settings");
  const [signingIn, setSigningIn] = useState(false);
  const Icon = KINDS[kind].icon;
  return (
    <div className="flex items-start gap-3 px-4 py-2">
      <Icon aria-hidden className="mt-0.5 size-4 shrink-0 text-faint" strokeWidth={1.75} />
      <div className="min-w-0 flex-1">
        <p className="flex flex-wrap items-center gap-x-2">
          <span className="min-w-0 font-medium wrap-anywhere">{kind === "skill" ? `/${name}` : name}</span>
          {state?.failed != null && <Badge tone="bad">{t("serverBroken")}</Badge>}
        </p>
        {about && <p className={kind === "skill" || kind === "agent" ? "line-clamp-2 text-dense text-muted wrap-anywhere" : "line-clamp-2 font-mono text-code text-muted wrap-anywhere"}>{about}</p>}
        <Dots className="text-meta text-faint">
          <Whence from={from} />
          {from && isOnRunner(from) && t(LAYERS[from.layer])}
          {from && <code>{short(from.digest)}</code>}
          {state?.failed === null && t("serverTools", { count: state.tools })}
        </Dots>
        {state?.failed != null && <p className="text-dense text-warn wrap-anywhere">{told(state.failed)}</p>}
      </div>
      {state?.failed != null && isAddress(about) && (
        <Button size="sm" aria-label={t("signInNamed", { name })} onClick={() => setSigningIn(true)}>
          {t("signIn")}
        </Button>
      )}
      {signingIn && <SignInDialog server={name} session={from && isOnRunner(from) ? session : undefined} onClose={() => setSigningIn(false)} />}
    </div>
  );
}

/** True for a tool server that the server calls: only such a one can want a sign-in. */
function isAddress(about: string): boolean {
  return /^https?:/.test(about);
}

/** A file of the runner with all that it does or would do, each action in full. Trust is in the text of the digest that is shown. */
function FileCard({ session, file }: { session: string; file: FoundFile }) {
  const { t } = useTranslation("settings");
  const editable = mayWork(useMe());
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const change = async (digest: string | undefined) => {
    setBusy(true);
    setError(undefined);
    try {
      await trustExtension(session, file.path, digest);
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Card className={file.trusted ? "" : "border-warn"}>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2 px-4 py-2.5">
        <div className="min-w-0 flex-1 basis-40">
          <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
            <code className="text-code font-medium wrap-anywhere">{file.path}</code>
            {file.trusted ? <Badge tone="good">{t("fileTrusted")}</Badge> : <Badge tone="warn">{t("fileWaits")}</Badge>}
          </p>
          <Dots className="text-meta text-faint">
            {t(LAYERS[file.layer])}
            <code>{short(file.digest)}</code>
          </Dots>
        </div>
        {editable &&
          (file.trusted ? (
            <Button size="sm" busy={busy} aria-label={t("untrustFileNamed", { name: file.path })} onClick={() => void change(undefined)}>
              {t("untrust")}
            </Button>
          ) : (
            <Button size="sm" look="primary" busy={busy} aria-label={t("trustFileNamed", { name: file.path })} onClick={() => void change(file.digest)}>
              {t("trustText")}
            </Button>
          ))}
      </div>
      <ul className="divide-y divide-line border-t border-line">
        {file.things.map(({ kind, name, about }, index) => (
          <li key={index} className="px-4 py-2">
            <p className="text-meta text-muted">
              {t(KINDS[kind].word)} <span className="text-ink wrap-anywhere">{name}</span>
            </p>
            <pre tabIndex={0} aria-label={t("whatItDoes", { name })} className="mt-0.5 max-h-48 overflow-y-auto text-code whitespace-pre-wrap wrap-anywhere">
              {about}
            </pre>
          </li>
        ))}
      </ul>
      {error !== undefined && <RefusedNote error={error} className="m-3" />}
    </Card>
  );
}
