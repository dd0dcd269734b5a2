import { useTranslation } from "react-i18next";
import type { SettingName } from "@/api/schema";
import { modeOf, PROPERTIES, type Property, propertiesOf } from "./facts";

const PROPERTY_WORDS = {
  file_writes: "propFileWrites",
  file_reads: "propFileReads",
  credential: "propCredential",
  sockets: "propSockets",
  network: "propNetwork",
  processes: "propProcesses",
  resources: "propResources",
  kill_tree: "propKillTree",
  kernel: "propKernel",
} as const satisfies Record<Property, string>;

/** Says a property of isolation in words. */
export function usePropertyText(): (property: string) => string {
  const { t } = useTranslation("settings");
  return (property) => {
    const known = PROPERTIES.find((one) => one === property);
    return known ? t(PROPERTY_WORDS[known]) : property;
  };
}

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
  const property = usePropertyText();
  const mode = useModeText();
  return (name, value) => {
    if (name === "runner") return value ?? t("noRunner");
    if (name === "language") return value ?? t("languageByModel");
    if (name === "mode") return value ? mode(value) : t("modeByPlace");
    if (name === "max_mode") return value ? mode(value) : t("noCeiling");
    if (name === "sudo") return t(value === "forbid" ? "sudoForbid" : "sudoAllow");
    if (name === "isolation") {
      const all = propertiesOf(value ?? "none");
      return all.length === 0 ? t("isolationNone") : all.map(property).join(t("listComma"));
    }
    return value ?? t("none", { ns: "common" });
  };
}
