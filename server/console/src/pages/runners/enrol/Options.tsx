import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { useRunners } from "@/api/runners";
import { cx } from "@/ui/class";
import { Field, Input, Select, Switch, Textarea } from "@/ui/Field";
import { NAME_AT_MOST } from "../name";
import { FLEET_AT_MOST, type Terms, VALIDITIES, type Wrong, wrongOf } from "./terms";

/** The id of the form, for the button in the dialog's foot. */
export const OPTIONS_FORM = "enrol-options";

interface OptionsProps {
  terms: Terms;
  onChange: (change: Partial<Terms>) => void;
  onSubmit: () => void;
}

/** On which terms machines may enrol. */
export function Options({ terms, onChange, onSubmit }: OptionsProps) {
  const { t } = useTranslation("runners");
  const names = useRunners()?.map((runner) => runner.name) ?? [];
  const [tried, setTried] = useState(false);
  const [unfolded, setUnfolded] = useState(() => terms.labels !== "" || terms.from !== "" || terms.ephemeral || terms.ownCertificate);
  const wrong = wrongOf(terms, names);
  const advancedWrong = wrong.includes("labels") || wrong.includes("server");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (wrong.length === 0) onSubmit();
    else if (advancedWrong) setUnfolded(true);
  };
  const says = (one: Wrong, words: string) => (wrong.includes(one) ? words : undefined);
  return (
    <form id={OPTIONS_FORM} onSubmit={submit} className="flex flex-col gap-4">
      <div role="radiogroup" aria-label={t("howMany")} className="flex gap-2">
        <Choice checked={!terms.fleet} label={t("oneMachine")} hint={t("oneMachineHint")} onChoose={() => onChange({ fleet: false })} />
        <Choice checked={terms.fleet} label={t("fleet")} hint={t("fleetHint")} onChoose={() => onChange({ fleet: true })} />
      </div>
      <div className="grid gap-4 md:grid-cols-2">
        {terms.fleet ? (
          <Field label={t("uses")} hint={t("usesHint")} error={tried ? says("uses", t("usesWrong", { most: FLEET_AT_MOST })) : undefined}>
            {(control) => (
              <Input {...control} inputMode="numeric" maxLength={4} value={terms.uses} onChange={(event) => onChange({ uses: event.target.value.replace(/\D/g, "") })} />
            )}
          </Field>
        ) : (
          <Field label={t("name")} hint={t("nameFromHost")} error={says("name", t("nameWrong")) ?? says("taken", t("nameTaken"))}>
            {(control) => (
              <Input
                {...control}
                autoFocus
                autoCapitalize="none"
                spellCheck={false}
                placeholder="laptop"
                maxLength={NAME_AT_MOST}
                value={terms.name}
                onChange={(event) => onChange({ name: event.target.value.trim() })}
              />
            )}
          </Field>
        )}
        <Field label={t("validFor")} hint={t("validForHint")}>
          {(control) => (
            <Select {...control} value={terms.validFor} onChange={(event) => onChange({ validFor: Number(event.target.value) })}>
              {VALIDITIES.map((seconds) => (
                <option key={seconds} value={seconds}>
                  {t(`valid${seconds}`)}
                </option>
              ))}
            </Select>
          )}
        </Field>
      </div>
      <details open={unfolded} onToggle={(event) => setUnfolded(event.currentTarget.open)}>
        <summary className="touchable text-dense font-medium text-muted hover:text-ink">{t("advanced")}</summary>
        <Advanced terms={terms} onChange={onChange} says={says} />
      </details>
    </form>
  );
}

function Advanced({ terms, onChange, says }: Pick<OptionsProps, "terms" | "onChange"> & { says: (one: Wrong, words: string) => string | undefined }) {
  const { t } = useTranslation("runners");
  return (
    <div className="mt-3 flex flex-col gap-4">
      <Field label={t("server")} hint={t("serverHint")} error={says("server", t("serverWrong"))}>
        {(control) => <Input {...control} inputMode="url" spellCheck={false} maxLength={300} value={terms.server} onChange={(event) => onChange({ server: event.target.value })} />}
      </Field>
      {terms.server.startsWith("https:") && (
        <SwitchRow label={t("ownCertificate")} hint={t("ownCertificateHint")} checked={terms.ownCertificate} onChange={(ownCertificate) => onChange({ ownCertificate })} />
      )}
      <SwitchRow label={t("ephemeralLabel")} hint={t("ephemeralHint")} checked={terms.ephemeral} onChange={(ephemeral) => onChange({ ephemeral })} />
      <div className="grid gap-4 md:grid-cols-2">
        <Field label={t("labels")} hint={t("labelsHint")} error={says("labels", t("labelsWrong"))}>
          {(control) => (
            <Textarea {...control} rows={2} spellCheck={false} placeholder="zone=office" maxLength={8000} value={terms.labels} onChange={(event) => onChange({ labels: event.target.value })} />
          )}
        </Field>
        <Field label={t("from")} hint={t("fromHint")}>
          {(control) => <Input {...control} spellCheck={false} placeholder="10.0.0.0/8" maxLength={100} value={terms.from} onChange={(event) => onChange({ from: event.target.value })} />}
        </Field>
      </div>
    </div>
  );
}

function SwitchRow({ label, hint, checked, onChange }: { label: string; hint: string; checked: boolean; onChange: (checked: boolean) => void }) {
  return (
    <div className="flex items-start gap-3">
      <div className="min-w-0 flex-1">
        <p className="text-dense font-medium">{label}</p>
        <p className="text-meta text-muted">{hint}</p>
      </div>
      <Switch checked={checked} onChange={onChange} label={label} />
    </div>
  );
}

function Choice({ checked, label, hint, onChoose }: { checked: boolean; label: string; hint: string; onChoose: () => void }) {
  return (
    <label
      className={cx(
        "flex flex-1 cursor-pointer items-start gap-2 rounded-control border px-3 py-2 has-focus-visible:outline-2 has-focus-visible:outline-offset-2 has-focus-visible:outline-accent",
        checked ? "border-accent bg-accent-soft" : "border-line hover:bg-hover",
      )}
    >
      <input type="radio" name="fleet" checked={checked} onChange={onChoose} className="mt-1 accent-accent focus-visible:outline-none" />
      <span>
        <span className="block text-dense font-medium">{label}</span>
        <span className="block text-meta text-muted">{hint}</span>
      </span>
    </label>
  );
}
