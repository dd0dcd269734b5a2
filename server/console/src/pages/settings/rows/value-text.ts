import { useTranslation } from "react-i18next";
import type { SettingName } from "@/api/schema";
import { isolationWords } from "@/i18n/isolation";
import { modeOf } from "./facts";

const MODE_WORDS = { plan: "modePlan", ask: "modeAsk", auto: "modeAuto", full: "modeFull" } as const;

/** Says a mode in words. */
export function useModeText(): (mode: string) => string {
  const { t } = useTranslation("settings");
  return (mode) => {
    const known = modeOf(mode);
    return known ? t(MODE_WORDS[known]) : mode;
  };
}

/** Says the value of a setting in words; also that there is none. */
export function useValueText(): (name: SettingName, value: string | undefined) => string {
  const { t } = useTranslation("settings");
  const mode = useModeText();
  return (name, value) => {
    if (name === "runner") return value ?? t("noRunner");
    if (name === "language") return value ?? t("languageByModel");
    if (name === "mode") return value ? mode(value) : t("modeByPlace");
    if (name === "max_mode") return value ? mode(value) : t("noCeiling");
    if (name === "sudo") return t(value === "forbid" ? "sudoForbid" : "sudoAllow");
    if (name === "isolation") return isolationWords(value ?? "none");
    return value ?? t("none", { ns: "common" });
  };
}
