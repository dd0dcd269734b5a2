import { type FormEvent, type InputHTMLAttributes, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/ui/Button";
import { Input } from "@/ui/Field";
import type { ControlProps } from "./SettingLine";

/** Languages that the input proposes, by what each calls itself; any other may be written. */
const LANGUAGES = ["English", "中文", "Deutsch", "Español", "Français", "日本語", "한국어", "Português", "Русский"];

/** A value that is typed. It is saved by Enter or by the button, which is there once the text differs. */
function LineControl({ value, onSave, saving, labelId, ...input }: ControlProps & InputHTMLAttributes<HTMLInputElement>) {
  const { t } = useTranslation("common");
  const [draft, setDraft] = useState<string>();
  const shown = draft ?? value ?? "";
  const differs = draft !== undefined && draft.trim() !== "" && draft.trim() !== (value ?? "");
  const { setting: _setting, layer: _layer, ...attributes } = input;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!differs) return;
    onSave(draft.trim());
    setDraft(undefined);
  };
  return (
    <form onSubmit={submit} className="flex w-full gap-2">
      <Input
        {...attributes}
        aria-labelledby={labelId}
        disabled={saving}
        value={shown}
        onChange={(event) => setDraft(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") setDraft(undefined);
        }}
      />
      {differs && (
        <Button type="submit" look="primary">
          {t("save")}
        </Button>
      )}
    </form>
  );
}

/** The most model calls in a turn: 1 to 500. */
export function StepsControl(props: ControlProps) {
  return <LineControl {...props} type="number" inputMode="numeric" min={1} max={500} step={1} required />;
}

/** The language of the answers: up to 40 letters. */
export function LanguageControl(props: ControlProps) {
  const { t } = useTranslation("settings");
  const list = useId();
  return (
    <>
      <LineControl {...props} list={list} maxLength={40} placeholder={t("languageByModel")} />
      <datalist id={list}>
        {LANGUAGES.map((language) => (
          <option key={language} value={language} />
        ))}
      </datalist>
    </>
  );
}
