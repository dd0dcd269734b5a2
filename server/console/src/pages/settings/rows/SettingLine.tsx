import { type ReactNode, useId } from "react";
import { useTranslation } from "react-i18next";
import { mayWork, useMe } from "@/api/me";
import type { Setting, SettingName } from "@/api/schema";
import { isSetIn, isTenantOnly, type Layer } from "./facts";
import { IsolationControl } from "./IsolationControl";
import { LanguageControl, StepsControl } from "./LineControl";
import { ModelControl } from "./ModelControl";
import { ModeControl, SudoControl, TenantRunnerControl } from "./ListControl";
import { Row } from "./Row";
import { SettingMeta } from "./SettingMeta";
import { useSave } from "./useSave";
import { useValueText } from "./value-text";

/** What a control of a setting gets. */
export interface ControlProps {
  setting: Setting;
  layer: Layer;
  /** The value to show: the stored one, or the one that is being stored. */
  value: string | undefined;
  onSave: (value: string | null) => void;
  saving: boolean;
  /** The id of its label's text. */
  labelId: string;
}

const WORDS = {
  runner: { label: "labelRunner", own: "sentenceRunner", everyone: "sentenceRunnerEveryone" },
  model: { label: "labelModel", own: "sentenceModel", everyone: "sentenceModelEveryone" },
  language: { label: "labelLanguage", own: "sentenceLanguage", everyone: "sentenceLanguage" },
  steps: { label: "labelSteps", own: "sentenceSteps", everyone: "sentenceSteps" },
  mode: { label: "labelMode", own: "sentenceMode", everyone: "sentenceModeEveryone" },
  max_mode: { label: "labelMaxMode", own: "sentenceMaxMode", everyone: "sentenceMaxModeEveryone" },
  isolation: { label: "labelIsolation", own: "sentenceIsolation", everyone: "sentenceIsolation" },
  sudo: { label: "labelSudo", own: "sentenceSudo", everyone: "sentenceSudo" },
} as const satisfies Record<SettingName, object>;

function control(props: ControlProps): ReactNode {
  switch (props.setting.name) {
    case "runner":
      return <TenantRunnerControl {...props} />;
    case "model":
      return <ModelControl {...props} />;
    case "language":
      return <LanguageControl {...props} />;
    case "steps":
      return <StepsControl {...props} />;
    case "mode":
    case "max_mode":
      return <ModeControl {...props} />;
    case "isolation":
      return <IsolationControl {...props} />;
    case "sudo":
      return <SudoControl {...props} />;
  }
}

/** The name and the sentence of a setting. A server that is newer than the console may have others: they keep their name. */
export function useSettingWords(setting: Setting, layer: Layer): { label: string; sentence: string } {
  const { t } = useTranslation("settings");
  const words = setting.name in WORDS ? WORDS[setting.name] : undefined;
  if (!words) return { label: setting.name, sentence: t("sentenceUnknown", { allowed: setting.allowed }) };
  return { label: t(words.label), sentence: t(layer === "tenant" ? words.everyone : words.own) };
}

/** A setting of a layer, with its control; without one where the person cannot change it there. */
export function SettingLine({ setting, layer, generation, editable = true, fact }: { setting: Setting; layer: Layer; generation: number; editable?: boolean; fact?: ReactNode }) {
  const { t } = useTranslation("settings");
  const labelId = useId();
  const { label, sentence } = useSettingWords(setting, layer);
  const { save, saving, pending, error } = useSave(setting.name, layer, generation);
  const text = useValueText();
  const me = useMe();
  const changeable = editable && mayWork(me) && setting.name in WORDS && (layer === "tenant" || !isTenantOnly(setting.name));
  const value = typeof pending === "string" ? pending : (setting.value ?? undefined);
  return (
    <Row
      label={label}
      labelId={labelId}
      sentence={sentence}
      control={
        changeable ? (
          control({ setting, layer, value, onSave: save, saving, labelId })
        ) : (
          <span className="min-w-0 font-medium wrap-anywhere md:text-right">{text(setting.name, value)}</span>
        )
      }
      meta={<SettingMeta setting={setting} layer={layer} />}
      fact={fact}
      onReset={changeable && isSetIn(layer, setting) ? () => save(null) : undefined}
      saving={saving}
      error={error}
      warning={setting.note ? t("cannotCount", { reason: noteWords(setting.note, t) }) : undefined}
    />
  );
}

function noteWords(note: string, t: (key: "noteRemoved" | "noteNotOffered") => string): string {
  if (note === "removed") return t("noteRemoved");
  return note === "not offered any more" ? t("noteNotOffered") : note;
}
