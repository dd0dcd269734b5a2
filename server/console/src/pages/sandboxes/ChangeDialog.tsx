import { useState } from "react";
import { useTranslation } from "react-i18next";
import { isAdmin, useMe } from "@/api/me";
import { useRunners } from "@/api/runners";
import { changeSandbox } from "@/api/sandboxes";
import type { Sandbox } from "@/api/schema";
import { Field, Input, Select } from "@/ui/Field";
import { FormDialog } from "@/ui/FormDialog";
import { say } from "@/ui/Toast";
import { BOUNDS, changeOf, formOf, type NumberField, wrongLimits } from "./limits";

const NUMBERS: readonly NumberField[] = ["memory", "processors", "processes", "idle"];

/** Changes a sandbox's template, and for admins its limits and its network. */
export function ChangeDialog({ sandbox, onClose }: { sandbox: Sandbox; onClose: () => void }) {
  const { t } = useTranslation("sandboxes");
  const admin = isAdmin(useMe());
  const pool = useRunners()?.find((runner) => runner.id === sandbox.runner)?.pool;
  const [form, setForm] = useState(() => formOf(sandbox));
  const templates = [...new Set([sandbox.template, ...(pool?.templates ?? [])])];
  const wrong = wrongLimits(form);
  const change = wrong.length === 0 ? changeOf(form, sandbox) : undefined;
  const save = async () => {
    if (!change) return;
    await changeSandbox(sandbox.id, change);
    say(t("changed"));
    onClose();
  };
  return (
    <FormDialog onClose={onClose} title={t("changeTitle")} description={t("changeWhy")} verb={t("save", { ns: "common" })} ready={change !== undefined} onSubmit={save}>
      <div className="grid gap-4 md:grid-cols-2">
        <Field label={t("template")} hint={t("templateHint")} className="md:col-span-2">
          {(control) => (
            <Select {...control} value={form.template} onChange={(event) => setForm({ ...form, template: event.target.value })}>
              {templates.map((template) => (
                <option key={template} value={template}>
                  {pool?.sudo_templates?.includes(template) ? t("templateSudo", { template }) : template}
                </option>
              ))}
            </Select>
          )}
        </Field>
        {admin &&
          NUMBERS.map((field) => (
            <Field key={field} label={t(`${field}Label`)} error={wrong.includes(field) ? t("outOfBounds", BOUNDS[field]) : undefined}>
              {(control) => <Input {...control} inputMode="decimal" maxLength={12} value={form[field]} onChange={(event) => setForm({ ...form, [field]: event.target.value })} />}
            </Field>
          ))}
        {admin && (
          <Field label={t("network")} className="md:col-span-2">
            {(control) => (
              <Select {...control} value={form.network} onChange={(event) => setForm({ ...form, network: event.target.value })}>
                <option value="none">{t("networkNone")}</option>
                <option value="open">{t("networkOpen")}</option>
              </Select>
            )}
          </Field>
        )}
        {!admin && <p className="text-meta text-muted md:col-span-2">{t("adminsOnly")}</p>}
      </div>
    </FormDialog>
  );
}
