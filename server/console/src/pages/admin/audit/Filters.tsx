import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import type { AuditFilter } from "@/api/audit";
import { Button } from "@/ui/Button";
import { Field, Input } from "@/ui/Field";

/** Chooses entries. An empty field chooses all. */
export function Filters({ filter, onChange }: { filter: AuditFilter; onChange: (filter: AuditFilter) => void }) {
  const { t } = useTranslation("admin");
  const [who, setWho] = useState(filter.who ?? "");
  const [what, setWhat] = useState(filter.what ?? "");
  const [since, setSince] = useState(filter.since ?? "");
  const show = (event: FormEvent) => {
    event.preventDefault();
    const wanted = { who: who.trim(), what: what.trim(), since };
    onChange(Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== "")));
  };
  const clear = () => {
    setWho("");
    setWhat("");
    setSince("");
    onChange({});
  };
  const isFiltered = Boolean(filter.who ?? filter.what ?? filter.since);
  return (
    <form onSubmit={show} className="mb-4 flex flex-wrap items-end gap-3">
      <Field label={t("who")} className="w-44">
        {(control) => <Input {...control} maxLength={64} placeholder={t("whoPlaceholder")} value={who} onChange={(event) => setWho(event.target.value)} />}
      </Field>
      <Field label={t("what")} className="w-44">
        {(control) => <Input {...control} maxLength={64} placeholder="runner." className="font-mono text-dense" value={what} onChange={(event) => setWhat(event.target.value)} />}
      </Field>
      <Field label={t("since")} className="w-40">
        {(control) => <Input {...control} type="date" value={since} onChange={(event) => setSince(event.target.value)} />}
      </Field>
      <Button type="submit">{t("show")}</Button>
      {isFiltered && (
        <Button look="quiet" onClick={clear}>
          {t("clear")}
        </Button>
      )}
    </form>
  );
}
