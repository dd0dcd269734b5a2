import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { testDeed } from "@/api/permissions";
import type { PermissionVerdict, TestedDeed } from "@/api/schema";
import { told } from "@/i18n/told";
import { Button } from "@/ui/Button";
import { ErrorNote } from "@/ui/ErrorNote";
import { Field, Input, Select } from "@/ui/Field";
import { Card, Section } from "@/ui/Page";
import { MODES, modeOf } from "../rows/facts";
import { useModeText } from "../rows/value-text";
import { AddRule } from "./AddRule";
import { DecisionBadge } from "./DecisionBadge";

const DEEDS = [
  { value: "shell", words: "deedShell", example: "git push origin main" },
  { value: "read", words: "deedRead", example: "src/main.rs" },
  { value: "write", words: "deedWrite", example: "src/main.rs" },
  { value: "fetch", words: "deedFetch", example: "https://docs.rs/serde" },
] as const satisfies readonly { value: TestedDeed; words: string; example: string }[];

/** Asks what would be decided about a command, a file or an address. Nothing is done. */
export function TestDeed() {
  const { t } = useTranslation("settings");
  const mode = useModeText();
  const [deed, setDeed] = useState<(typeof DEEDS)[number]>(DEEDS[0]);
  const [text, setText] = useState("");
  const [wanted, setWanted] = useState("");
  const test = useMutation({
    mutationFn: () => {
      const inMode = modeOf(wanted);
      return testDeed({ text, deed: deed.value, ...(inMode ? { mode: inMode } : {}) });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    test.mutate();
  };
  return (
    <Section title={t("testTitle")} note={t("testNote")}>
      <Card className="px-4 py-4">
        <form onSubmit={submit} className="grid grid-cols-1 items-end gap-3 md:grid-cols-[9rem_minmax(0,1fr)_9rem_auto]">
          <Field label={t("deed")}>
            {(control) => (
              <Select {...control} value={deed.value} onChange={(event) => setDeed(DEEDS.find((one) => one.value === event.target.value) ?? DEEDS[0])}>
                {DEEDS.map((one) => (
                  <option key={one.value} value={one.value}>
                    {t(one.words)}
                  </option>
                ))}
              </Select>
            )}
          </Field>
          <Field label={t("deedText")}>
            {(control) => <Input {...control} required maxLength={65536} spellCheck={false} autoCapitalize="none" placeholder={deed.example} className="font-mono text-code" value={text} onChange={(event) => setText(event.target.value)} />}
          </Field>
          <Field label={t("labelMode")}>
            {(control) => (
              <Select {...control} value={wanted} onChange={(event) => setWanted(event.target.value)}>
                <option value="">{t("modeMine")}</option>
                {MODES.map((one) => (
                  <option key={one} value={one}>
                    {mode(one)}
                  </option>
                ))}
              </Select>
            )}
          </Field>
          <Button type="submit" busy={test.isPending}>
            {t("test")}
          </Button>
        </form>
        {test.error && <ErrorNote error={test.error} className="mt-3" />}
        {test.data && <Verdict verdict={test.data} />}
      </Card>
    </Section>
  );
}

const RISKS = { low: "riskLow", medium: "riskMedium", high: "riskHigh" } as const;

function Verdict({ verdict }: { verdict: PermissionVerdict }) {
  const { t } = useTranslation("settings");
  const mode = useModeText();
  const [adding, setAdding] = useState(false);
  return (
    <div role="status" className="mt-4 border-t border-line pt-3 text-dense">
      <p className="flex flex-wrap items-center gap-2">
        <DecisionBadge decision={verdict.decision} />
        <span className="min-w-0 wrap-anywhere">{told(verdict.why)}</span>
      </p>
      <dl className="mt-2 grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1">
        <dt className="text-muted">{t("labelMode")}</dt>
        <dd>{mode(verdict.mode)}</dd>
        <dt className="text-muted">{t("risk")}</dt>
        <dd>
          {t(RISKS[verdict.risk])}
          {verdict.reasons.map((reason) => (
            <span key={reason} className="block text-muted wrap-anywhere">
              {told(reason)}
            </span>
          ))}
        </dd>
        <dt className="text-muted">{t("decidedBy")}</dt>
        <dd>{verdict.rule ? <code className="text-code wrap-anywhere">{verdict.rule}</code> : t("decidedByMode")}</dd>
      </dl>
      {verdict.suggestion && verdict.decision !== "allow" && (
        <p className="mt-3 flex flex-wrap items-center gap-2">
          <Button size="sm" onClick={() => setAdding(true)}>
            {t("allowAlways")}
          </Button>
          <code className="text-code text-muted wrap-anywhere">{verdict.suggestion}</code>
        </p>
      )}
      {adding && verdict.suggestion && <AddRule forEveryone={false} start={{ decision: "allow", rule: verdict.suggestion }} onClose={() => setAdding(false)} />}
    </div>
  );
}
