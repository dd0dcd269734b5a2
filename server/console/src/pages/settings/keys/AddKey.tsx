import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { createKey } from "@/api/keys";
import { isAdmin, useMe } from "@/api/me";
import type { CreatedKey, ScopeName } from "@/api/schema";
import { Button } from "@/ui/Button";
import { CopyLine } from "@/ui/CopyLine";
import { Dialog } from "@/ui/Dialog";
import { Field, Input, Select } from "@/ui/Field";
import { useIdempotencyKey } from "@/ui/useIdempotencyKey";
import { RefusedNote } from "../rows/Row";
import { type KeyForm, requestOf, SCOPES, USUAL_SCOPES, VALIDITIES } from "./key-form";

const SCOPE_WORDS = {
  chat: "scopeChat",
  runners: "scopeRunners",
  exec: "scopeExec",
  read: "scopeRead",
  admin: "scopeAdmin",
  metrics: "scopeMetrics",
} as const satisfies Record<ScopeName, string>;

/** Makes an API key, and shows it once. */
export function AddKey({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation("settings");
  const me = useMe();
  const scopes = SCOPES.filter((scope) => isAdmin(me) || scope !== "metrics");
  const [form, setForm] = useState<KeyForm>({ name: "", scopes: me?.user.role === "viewer" ? ["read"] : USUAL_SCOPES, days: 90, from: "" });
  const key = useIdempotencyKey(form);
  // `gcTime`: the key does not stay in memory once the dialog is closed.
  const create = useMutation({ mutationFn: () => createKey(requestOf(form), key), gcTime: 0 });
  const id = useId();
  const set = (change: Partial<KeyForm>) => setForm({ ...form, ...change });
  const toggle = (scope: ScopeName, on: boolean) => set({ scopes: on ? [...form.scopes, scope] : form.scopes.filter((one) => one !== scope) });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (form.scopes.length > 0) create.mutate();
  };
  if (create.data) return <Created created={create.data} onClose={onClose} />;
  return (
    <Dialog
      open
      onClose={onClose}
      title={t("addKeyTitle")}
      description={t("addKeyWhy")}
      actions={
        <>
          <Button onClick={onClose}>{t("cancel", { ns: "common" })}</Button>
          <Button type="submit" form={id} look="primary" busy={create.isPending} disabled={form.scopes.length === 0}>
            {t("addKey")}
          </Button>
        </>
      }
    >
      <form id={id} onSubmit={submit} className="flex flex-col gap-3">
        <Field label={t("keyName")} hint={t("keyNameHint")}>
          {(control) => <Input {...control} autoFocus required maxLength={63} value={form.name} onChange={(event) => set({ name: event.target.value })} />}
        </Field>
        <fieldset>
          <legend className="text-dense font-medium">{t("scopes")}</legend>
          {scopes.map((scope) => (
            <label key={scope} className="touchable flex items-start gap-2.5 py-1">
              <input type="checkbox" className="mt-0.5 size-4 shrink-0 accent-accent" checked={form.scopes.includes(scope)} onChange={(event) => toggle(scope, event.target.checked)} />
              <code className="w-16 shrink-0 text-code">{scope}</code>
              <span className="min-w-0 flex-1 text-dense text-muted">{t(SCOPE_WORDS[scope])}</span>
            </label>
          ))}
          {form.scopes.length === 0 && <p className="text-meta text-bad">{t("noScopes")}</p>}
        </fieldset>
        <Field label={t("validity")}>
          {(control) => (
            <Select {...control} value={form.days ?? ""} onChange={(event) => set({ days: event.target.value ? Number(event.target.value) : undefined })}>
              {VALIDITIES.map((days) => (
                <option key={days ?? "none"} value={days ?? ""}>
                  {days ? t("days", { count: days }) : t("noEnd")}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Field label={t("addresses")} hint={t("addressesHint")}>
          {(control) => <Input {...control} maxLength={1024} spellCheck={false} placeholder="10.0.0.0/8" className="font-mono text-code" value={form.from} onChange={(event) => set({ from: event.target.value })} />}
        </Field>
        {create.error && <RefusedNote error={create.error} />}
      </form>
    </Dialog>
  );
}

function Created({ created, onClose }: { created: CreatedKey; onClose: () => void }) {
  const { t } = useTranslation("settings");
  return (
    <Dialog
      open
      onClose={onClose}
      dismissable={false}
      title={t("keyMade", { name: created.entry.name })}
      description={t("keyOnce")}
      actions={
        <Button look="primary" onClick={onClose}>
          {t("keyCopied")}
        </Button>
      }
    >
      <CopyLine text={created.key} />
      <p className="mt-3 text-dense text-muted">{t("keyWarning", { scopes: (created.entry.scopes ?? []).join(t("listComma", { ns: "common" })) })}</p>
    </Dialog>
  );
}
