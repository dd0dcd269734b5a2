import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { modelsQuery } from "@/api/models";
import { changeSettings, settingOf, settingsQuery } from "@/api/settings";
import type { ModelState, OfferedModel } from "@/api/schema";
import { told } from "@/i18n/told";
import type { DotState } from "@/ui/Dot";
import { Picker, type PickerOption } from "@/ui/Picker";
import { sayFailed } from "@/ui/Toast";
import { choose, useChoices } from "../choices";
import { AS_USUAL, Chip, type Scope, ScopeSwitch } from "./Chip";

const TIERS = ["auto", "vanguard", "balance", "swift"] as const;
const DOTS: Record<ModelState, DotState> = { ready: "good", cooling_down: "warn", refused: "bad", away: "off" };

/** The choice of the model that answers next: a name, a tier, or several with commas; undefined until it is known. */
export function useModelChoice(session: string | undefined): string | undefined {
  const chosen = useChoices().model;
  const setting = settingOf(useQuery(settingsQuery(session)).data, "model");
  return (session === undefined ? chosen : undefined) ?? setting?.value ?? undefined;
}

/** The offered model that the choice names; undefined for a tier, or for one that is not offered any more. */
export function useChosenModel(session: string | undefined): OfferedModel | undefined {
  const choice = useModelChoice(session)?.split(",")[0]?.trim();
  return useQuery(modelsQuery).data?.models.find((model) => model.name === choice);
}

/** The model that answers. It opens the list of models and tiers. */
export function ModelChip({ session, disabled }: { session: string | undefined; disabled?: boolean }) {
  const { t } = useTranslation("chat");
  const offered = useQuery(modelsQuery).data?.models;
  const setting = settingOf(useQuery(settingsQuery(session)).data, "model");
  const choices = useChoices();
  const choice = useModelChoice(session);
  const practice = useChosenModel(session)?.practice ?? false;
  const [scope, setScope] = useState<Scope>("chat");
  const own = session === undefined ? choices.model !== undefined : setting?.set_by === "session";
  const pick = async (value: string) => {
    const chosen = value === AS_USUAL ? undefined : value;
    try {
      if (scope === "all" && chosen) await changeSettings({ layer: "user", values: { model: chosen } });
      const forChat = scope === "chat" ? chosen : undefined;
      if (session === undefined) choose({ model: forChat });
      else if (scope === "chat" || own) await changeSettings({ layer: "session", session, values: { model: forChat ?? null } });
    } catch (error) {
      sayFailed(t("inputNotChosen"), error);
    }
  };
  const models = unique(offered ?? []).map(
    (model): PickerOption => ({
      value: model.name,
      label: model.practice ? t("inputPractice") : model.name,
      meta: model.provider || undefined,
      dot: DOTS[model.state],
      note: model.practice ? t("inputPracticeHint") : model.state === "ready" ? undefined : model.reason ? told(model.reason) : t(`inputModel_${model.state}`),
      group: t("inputModels"),
    }),
  );
  const options: PickerOption[] = [...models, ...TIERS.map((tier): PickerOption => ({ value: tier, label: tier, note: t(`inputTier_${tier}`), group: t("inputTiers") }))];
  if (own) options.unshift({ value: AS_USUAL, label: t("inputAsUsual") });
  return (
    <Picker
      trigger={
        <Chip disabled={disabled || choice === undefined} aria-label={t("inputModelName", { model: choice ?? "" })}>
          <span className="max-w-48 truncate">{practice ? t("inputPractice") : (choice ?? "…")}</span>
          {setting?.note && <span className="text-bad">{t("inputModelGone")}</span>}
        </Chip>
      }
      label={t("inputModels")}
      value={choice}
      options={options}
      onChoose={(value) => void pick(value)}
      header={<ScopeSwitch scope={scope} onChange={setScope} />}
      footer={t("inputModelFrom")}
    />
  );
}

/** Each name once: several accounts may offer the same model, and the first one's state counts. */
function unique(models: readonly OfferedModel[]): OfferedModel[] {
  const seen = new Set<string>();
  return models.filter((model) => !seen.has(model.name) && seen.add(model.name));
}
