import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { addRule } from "@/api/permissions";
import type { Decision } from "@/api/schema";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { Field, Input, Select } from "@/ui/Field";
import { RefusedNote } from "../rows/Row";

const EXAMPLES = [
  { rule: "Shell(git push *)", words: "exampleShell" },
  { rule: "Shell(=make deploy)", words: "exampleExact" },
  { rule: "Write(src/**)", words: "exampleWrite" },
  { rule: "Read(**/.env)", words: "exampleRead" },
  { rule: "WebFetch(domain:docs.rs)", words: "exampleFetch" },
  { rule: "Tool(web_search)", words: "exampleTool" },
] as const;

/** Sets a rule, for the person's agents or for everyone's. */
export function AddRule({ forEveryone, start, onClose }: { forEveryone: boolean; start?: { decision: Decision; rule: string }; onClose: () => void }) {
  const { t } = useTranslation("settings");
  const [decision, setDecision] = useState<Decision>(start?.decision ?? "allow");
  const [rule, setRule] = useState(start?.rule ?? "");
  const add = useMutation({ mutationFn: () => addRule({ decision, rule: rule.trim(), for_everyone: forEveryone }), onSuccess: onClose });
  const form = useId();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    add.mutate();
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={t(forEveryone ? "addRuleEveryoneTitle" : "addRuleTitle")}
      description={t("addRuleWhy")}
      actions={
        <>
          <Button onClick={onClose}>{t("cancel", { ns: "common" })}</Button>
          <Button type="submit" form={form} look="primary" busy={add.isPending}>
            {t("addRule")}
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={submit} className="flex flex-col gap-3">
        <Field label={t("decision")}>
          {(control) => (
            <Select {...control} value={decision} onChange={(event) => setDecision(event.target.value === "deny" ? "deny" : event.target.value === "ask" ? "ask" : "allow")}>
              <option value="allow">{t("decisionAllow")}</option>
              <option value="ask">{t("decisionAsk")}</option>
              <option value="deny">{t("decisionDeny")}</option>
            </Select>
          )}
        </Field>
        <Field label={t("rule")} hint={t("ruleHint")}>
          {(control) => (
            <Input {...control} autoFocus required maxLength={500} spellCheck={false} autoCapitalize="none" placeholder="Shell(cargo test *)" className="font-mono text-code" value={rule} onChange={(event) => setRule(event.target.value)} />
          )}
        </Field>
        {add.error && <RefusedNote error={add.error} />}
      </form>
      <h3 className="mt-4 text-dense font-medium">{t("examples")}</h3>
      <ul className="mt-1">
        {EXAMPLES.map((example) => (
          <li key={example.rule}>
            <button type="button" className="touchable -mx-2 flex w-[calc(100%+1rem)] flex-wrap items-baseline gap-x-3 rounded-control px-2 py-1 text-left hover:bg-hover" onClick={() => setRule(example.rule)}>
              <code className="text-code">{example.rule}</code>
              <span className="text-meta text-muted">{t(example.words)}</span>
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
