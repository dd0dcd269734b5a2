import { useQuery } from "@tanstack/react-query";
import { ShieldQuestion } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { changeSettings, settingOf, settingsQuery } from "@/api/settings";
import type { Mode } from "@/api/schema";
import { MODES, modeOf } from "@/pages/settings/rows/facts";
import { useModeText } from "@/pages/settings/rows/value-text";
import { Picker, type PickerOption } from "@/ui/Picker";
import { sayFailed } from "@/ui/Toast";
import { choose, useChoices } from "../choices";
import { usePlace } from "../place";
import { AS_USUAL, Chip, type Scope, ScopeSwitch } from "./Chip";

/** The mode under which the next turn works; undefined until that is known. */
export function useMode(session: string | undefined): Mode | undefined {
  const choices = useChoices();
  const mode = settingOf(useQuery(settingsQuery(session)).data, "mode");
  const place = usePlace(session);
  if (session === undefined && choices.mode) return choices.mode;
  // Without a choice, the mode follows the isolation of the place: that of the chosen one, if another was chosen.
  if (session === undefined && choices.runner && mode && !mode.value) return place?.isolation === "none" ? "ask" : "auto";
  return modeOf(mode?.in_effect ?? mode?.value);
}

/** How free the agent is. It opens the list of modes, each with what it means. */
export function ModeChip({ session, disabled }: { session: string | undefined; disabled?: boolean }) {
  const { t } = useTranslation("chat");
  const text = useModeText();
  const settings = useQuery(settingsQuery(session)).data;
  const choices = useChoices();
  const mode = useMode(session);
  const place = usePlace(session);
  const [scope, setScope] = useState<Scope>("chat");
  const own = session === undefined ? choices.mode !== undefined : settingOf(settings, "mode")?.set_by === "session";
  const ceilings = [settingOf(settings, "max_mode")?.value, place?.runner?.ceiling].map(modeOf);
  const ceiling = Math.min(...ceilings.map((one) => (one ? MODES.indexOf(one) : MODES.length)));
  const pick = async (value: string) => {
    const chosen = value === AS_USUAL ? undefined : modeOf(value);
    try {
      if (scope === "all" && chosen) await changeSettings({ layer: "user", values: { mode: chosen } });
      const forChat = scope === "chat" ? chosen : undefined;
      if (session === undefined) choose({ mode: forChat });
      else if (scope === "chat" || own) await changeSettings({ layer: "session", session, values: { mode: forChat ?? null } });
    } catch (error) {
      sayFailed(t("inputNotChosen"), error);
    }
  };
  const options: PickerOption[] = MODES.map((one, place) => ({
    value: one,
    label: text(one),
    note: place > ceiling ? t("inputModeAbove", { mode: text(MODES[ceiling] ?? "full") }) : t(`inputModeHint_${one}`),
    disabled: place > ceiling,
  }));
  if (own) options.unshift({ value: AS_USUAL, label: t("inputAsUsual") });
  return (
    <Picker
      trigger={
        <Chip disabled={disabled || mode === undefined} aria-label={t("inputModeName", { mode: mode ? text(mode) : "" })}>
          <ShieldQuestion aria-hidden className="size-4 shrink-0" />
          <span className="truncate">{mode ? text(mode) : "…"}</span>
        </Chip>
      }
      label={t("inputModes")}
      value={mode}
      options={options}
      onChoose={(value) => void pick(value)}
      header={<ScopeSwitch scope={scope} onChange={setScope} />}
      footer={t("inputFrom")}
    />
  );
}
