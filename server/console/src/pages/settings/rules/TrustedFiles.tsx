import { Plus } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { untrustFile } from "@/api/permissions";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Confirm } from "@/ui/Confirm";
import { Section } from "@/ui/Page";
import { Ago } from "@/ui/Time";
import { EmptyRow } from "../rows/EmptyRow";
import { Dots, Rows } from "../rows/Row";
import { DecisionBadge } from "./DecisionBadge";
import { type FileOfRules, inOrder } from "./order";
import { TrustFile } from "./TrustFile";

/** The files with rules of projects that the person trusts. */
export function TrustedFiles({ files }: { files: FileOfRules[] }) {
  const { t } = useTranslation("settings");
  const [trusting, setTrusting] = useState(false);
  const [leaving, setLeaving] = useState<FileOfRules["file"]>();
  const trust = (
    <Button icon={Plus} size="sm" onClick={() => setTrusting(true)}>
      {t("trustFile")}
    </Button>
  );
  return (
    <Section title={t("filesTitle")} note={t("filesNote")} actions={files.length > 0 && trust}>
      {files.length === 0 ? (
        <EmptyRow title={t("noFiles")} action={trust}>
          {t("noFilesWhy")}
        </EmptyRow>
      ) : (
        <Rows>
          {files.map(({ file, rules }) => (
            <div key={file.id} className="px-4 py-2.5">
              <div className="flex items-center gap-3">
                <div className="min-w-0 flex-1">
                  <p className="flex flex-wrap items-center gap-x-2">
                    <code className="text-code wrap-anywhere">{file.path}</code>
                    {file.changed && <Badge tone="warn">{t("fileChanged")}</Badge>}
                  </p>
                  <Dots className="text-meta text-faint">
                    {t("fileOn", { runner: file.runner, workspace: file.workspace })}
                    {t("ruleCount", { count: rules.length })}
                    <Ago at={file.since} />
                  </Dots>
                </div>
                <Button size="sm" aria-label={t("untrustNamed", { name: file.path })} onClick={() => setLeaving(file)}>
                  {t("untrust")}
                </Button>
              </div>
              {file.changed && <p className="mt-1 text-dense text-warn">{t("fileChangedWhy")}</p>}
              <details className="mt-1 text-dense">
                <summary className="text-meta text-muted">{t("showRules")}</summary>
                <ul className="mt-2 flex flex-col gap-1.5">
                  {inOrder(rules).map((rule) => (
                    <li key={`${rule.decision} ${rule.rule}`} className="flex items-center gap-3">
                      <DecisionBadge decision={rule.decision} />
                      <code className="min-w-0 text-code wrap-anywhere">{rule.rule}</code>
                    </li>
                  ))}
                </ul>
              </details>
            </div>
          ))}
        </Rows>
      )}
      {trusting && <TrustFile onClose={() => setTrusting(false)} />}
      {leaving && (
        <Confirm open danger title={t("untrustTitle")} verb={t("untrust")} onClose={() => setLeaving(undefined)} onConfirm={() => untrustFile(leaving.id)}>
          <p className="font-mono text-code text-ink wrap-anywhere">{leaving.path}</p>
          <p className="mt-2">{t("untrustWhy")}</p>
        </Confirm>
      )}
    </Section>
  );
}
