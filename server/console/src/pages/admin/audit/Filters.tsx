import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { AuditFilter } from "@/api/audit";
import { Button } from "@/ui/Button";
import { Field, Input } from "@/ui/Field";
import { GROUPS, KINDS, kindInWords } from "./kinds";

/** Chooses entries. An empty field chooses all. */
export function Filters({ filter, onChange }: { filter: AuditFilter; onChange: (filter: AuditFilter) => void }) {
  const { t, i18n } = useTranslation("admin");
  const list = useId();
  const [typed, setTyped] = useState(filter);
  const [shown, setShown] = useState(filter);
  // Back and a link change the filter without the form.
  if (shown !== filter) {
    setShown(filter);
    setTyped(filter);
  }
  const set = (change: AuditFilter) => setTyped({ ...typed, ...change });
  const { who = "", what = "", since = "" } = typed;
  const show = (event: FormEvent) => {
    event.preventDefault();
    onChange({ who: who.trim() || undefined, what: what.trim().toLowerCase() || undefined, since: since || undefined });
  };
  const isFiltered = Boolean(filter.who ?? filter.what ?? filter.since);
  return (
    <form onSubmit={show} className="mb-4 flex flex-wrap items-end gap-3">
      <Field label={t("who")} className="w-44">
        {(control) => <Input {...control} maxLength={64} placeholder={t("whoPlaceholder")} value={who} onChange={(event) => set({ who: event.target.value })} />}
      </Field>
      <Field label={t("what")} className="w-60">
        {(control) => (
          <Input
            {...control}
            list={list}
            maxLength={64}
            autoCapitalize="none"
            placeholder={t("whatPlaceholder")}
            className="font-mono text-dense"
            value={what}
            onChange={(event) => set({ what: event.target.value })}
          />
        )}
      </Field>
      <datalist id={list}>
        {GROUPS.map((group) => (
          <option key={group} value={group} label={t("whatAll", { group })} />
        ))}
        {Object.keys(KINDS).map((kind) => (
          <option key={kind} value={kind} label={`${kind} · ${kindInWords(kind, i18n.language) ?? ""}`} />
        ))}
      </datalist>
      <Field label={t("since")} className="w-40">
        {(control) => <Input {...control} type="date" value={since} onChange={(event) => set({ since: event.target.value })} />}
      </Field>
      <Button type="submit">{t("show")}</Button>
      {isFiltered && (
        <Button look="quiet" onClick={() => onChange({})}>
          {t("clear")}
        </Button>
      )}
    </form>
  );
}
