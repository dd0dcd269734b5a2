import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { modelsQuery } from "@/api/models";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { Field, Input, Select } from "@/ui/Field";
import type { ControlProps } from "./SettingLine";

/** Choices that leave the model to the server; a tier's providers name a model for each. */
const TIERS = [
  { value: "auto", words: "tierAuto" },
  { value: "vanguard", words: "tierVanguard" },
  { value: "balance", words: "tierBalance" },
  { value: "swift", words: "tierSwift" },
] as const;

/** Opens the dialog for several models. No model has this name: a comma separates names. */
const SEVERAL = ",";

/** The model that answers: one that is offered, a tier, or several in their order. */
export function ModelControl({ setting, layer, value: told, onSave, saving, labelId }: ControlProps) {
  const { t } = useTranslation("settings");
  const { data } = useQuery(modelsQuery);
  const [several, setSeveral] = useState(false);
  // Without a choice the first model answers, which may be one of the reader's own account: others have another.
  const value = layer === "tenant" && setting.set_by === "default" && told === setting.value ? undefined : told;
  const names = [...new Set(data?.models.map((model) => model.name))];
  const known = names.includes(value ?? "") || TIERS.some((tier) => tier.value === value);
  const choose = (chosen: string) => {
    if (chosen === SEVERAL) setSeveral(true);
    else if (chosen) onSave(chosen);
  };
  return (
    <>
      <Select aria-labelledby={labelId} disabled={saving} value={value ?? ""} onChange={(event) => choose(event.target.value)}>
        {!known && <option value={value ?? ""}>{value ?? t("firstOfEach")}</option>}
        <optgroup label={t("offeredModels")}>
          {names.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </optgroup>
        <optgroup label={t("tiers")}>
          {TIERS.map((tier) => (
            <option key={tier.value} value={tier.value}>
              {t(tier.words)}
            </option>
          ))}
          <option value={SEVERAL}>{t("several")}</option>
        </optgroup>
      </Select>
      {several && <SeveralModels names={names} value={value ?? ""} onSave={onSave} onClose={() => setSeveral(false)} />}
    </>
  );
}

function SeveralModels({ names, value, onSave, onClose }: { names: string[]; value: string; onSave: (value: string) => void; onClose: () => void }) {
  const { t } = useTranslation("settings");
  const [text, setText] = useState(value);
  const form = useId();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSave(text.trim());
    onClose();
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={t("severalTitle")}
      description={t("severalWhy")}
      actions={
        <>
          <Button onClick={onClose}>{t("cancel", { ns: "common" })}</Button>
          <Button type="submit" form={form} look="primary">
            {t("save", { ns: "common" })}
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={submit}>
        <Field label={t("severalLabel")} hint={t("severalHint")}>
          {(control) => <Input {...control} autoFocus required maxLength={128} spellCheck={false} autoCapitalize="none" value={text} onChange={(event) => setText(event.target.value)} />}
        </Field>
        <div className="mt-3 flex max-h-40 flex-wrap gap-1.5 overflow-y-auto">
          {names.map((name) => (
            <Button key={name} size="sm" className="max-w-full" onClick={() => setText(text.trim() === "" ? name : `${text.replace(/[\s,]+$/, "")}, ${name}`)}>
              <span className="truncate">{name}</span>
            </Button>
          ))}
        </div>
      </form>
    </Dialog>
  );
}
