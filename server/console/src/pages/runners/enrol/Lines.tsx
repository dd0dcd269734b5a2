import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import type { RunnerArchive } from "@/api/schema";
import { reachOf } from "@/state/reach";
import { CopyLine } from "@/ui/CopyLine";
import { Note } from "@/ui/Note";
import { Tabs } from "@/ui/Tabs";
import type { MadeToken } from "./useEnrolment";
import { enrolLine, installLine, isPlain, serverAddress } from "./line";

/** The lines to paste: for a machine without Gantry, for one that has it, and for a Docker host. */
export function Lines({ made }: { made: MadeToken }) {
  const { t } = useTranslation("runners");
  const archives = made.token.archives ?? [];
  const [tab, setTab] = useState(archives.length > 0 ? "new" : "installed");
  const { terms, token } = made;
  const server = serverAddress(terms.server);
  if (!server) return null;
  // Every user of a machine can read its command lines, and the token of a fleet stays good.
  const shown = terms.fleet ? undefined : token.token;
  const tabs = [
    ...(archives.length > 0
      ? [{ value: "new", label: t("tabNew"), content: <NewMachine archives={archives} line={(archive) => installLine({ server, ownCertificate: terms.ownCertificate }, archive, shown)} /> }]
      : []),
    {
      value: "installed",
      label: t("tabInstalled"),
      content: (
        <Panel note={t("installedHint")}>
          <CopyLine text={enrolLine(server, shown)} label={t("copyLine")} />
        </Panel>
      ),
    },
    {
      value: "docker",
      label: t("tabDocker"),
      content: (
        <Panel note={t("dockerHint")}>
          <CopyLine text={enrolLine(server, shown, "docker")} label={t("copyLine")} />
        </Panel>
      ),
    },
  ];
  return (
    <div className="flex flex-col gap-3">
      {reachOf(server) === "machine" && <Note strong>{t("loopback", { server })}</Note>}
      {terms.fleet && (
        <div>
          <p className="mb-1 text-dense">{t("fleetToken")}</p>
          <CopyLine text={token.token} label={t("copyToken")} />
        </div>
      )}
      <Tabs label={t("ways")} tabs={tabs} value={tab} onChange={setTab} />
      {isPlain(server) && <Note>{t("plainText")}</Note>}
      {archives.length === 0 && <Note>{t("noArchives")}</Note>}
    </div>
  );
}

function NewMachine({ archives, line }: { archives: RunnerArchive[]; line: (archive: RunnerArchive) => string }) {
  const { t } = useTranslation("runners");
  return (
    <Panel note={t("newHint")}>
      {archives.map((archive) => (
        <div key={archive.sha256}>
          {archives.length > 1 && <p className="mb-1 text-meta text-muted">{t("archFor", { arch: archive.arch })}</p>}
          <CopyLine text={line(archive)} label={t("copyLine")} />
        </div>
      ))}
    </Panel>
  );
}

function Panel({ note, children }: { note: string; children: ReactNode }) {
  return (
    <div className="flex flex-col gap-2 pt-3">
      <p className="text-dense text-muted">{note}</p>
      {children}
    </div>
  );
}
