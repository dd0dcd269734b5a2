import { useQuery } from "@tanstack/react-query";
import { ShieldQuestion } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { changeSettings, settingOf, settingsQuery } from "@/api/settings";
import type { Mode } from "@/api/schema";
import { Picker, type PickerOption } from "@/ui/Picker";
import { sayFailed } from "@/ui/Toast";
import { choose, useChoices } from "../choices";
import { usePlace } from "../place";
import { AS_USUAL, Chip, type Scope, ScopeSwitch } from "./Chip";

const MODES: readonly Mode[] = ["plan", "ask", "auto", "full"];

/** The mode under which the next turn works; undefined until that is known. */
export function useMode(session: string | undefined): Mode | undefined {
  const choices = useChoices();
  const mode = settingOf(useQuery(settingsQuery(session)).data, "mode");
  const place = usePlace(session);
  if (session === undefined && choices.mode) return choices.mode;
  // Without a choice, the mode follows the isolation of the place: that of the chosen one, if another was chosen.
  if (session === undefined && choices.runner && mode && !mode.value) return place?.isolation === "none" ? "ask" : "auto";
  return asMode(mode?.in_effect ?? mode?.value);
}

/** How free the agent is. It opens the list of modes, each with what it means. */
export function ModeChip({ session, disabled }: { session: string | undefined; disabled?: boolean }) {
  const { t } = useTranslation("chat");
  const settings = useQuery(settingsQuery(session)).data;
  const choices = useChoices();
  const mode = useMode(session);
  const place = usePlace(session);
  const [scope, setScope] = useState<Scope>("chat");
  const own = session === undefined ? choices.mode !== undefined : settingOf(settings, "mode")?.set_by === "session";
  const ceilings = [settingOf(settings, "max_mode")?.value, place?.runner?.ceiling].map(asMode);
  const ceiling = Math.min(...ceilings.map((one) => (one ? MODES.indexOf(one) : MODES.length)));
  const pick = async (value: string) => {
    const chosen = value === AS_USUAL ? undefined : asMode(value);
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
    label: t(`inputMode_${one}`),
    note: place > ceiling ? t("inputModeAbove", { mode: t(`inputMode_${MODES[ceiling] ?? "full"}`) }) : t(`inputModeHint_${one}`),
    disabled: place > ceiling,
  }));
  if (own) options.unshift({ value: AS_USUAL, label: t("inputAsUsual") });
  return (
    <Picker
      trigger={
        <Chip disabled={disabled || mode === undefined} aria-label={t("inputModeName", { mode: mode ? t(`inputMode_${mode}`) : "" })}>
          <ShieldQuestion aria-hidden className="size-4 shrink-0" />
          <span className="truncate">{mode ? t(`inputMode_${mode}`) : "…"}</span>
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

function asMode(value: string | null | undefined): Mode | undefined {
  return MODES.find((mode) => mode === value);
}
