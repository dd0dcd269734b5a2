import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { mayWork, useMe } from "@/api/me";
import { modelsQuery } from "@/api/models";
import { settingOf, settingsQuery } from "@/api/settings";
import { ErrorNote } from "@/ui/ErrorNote";
import { Section } from "@/ui/Page";
import { Skeleton } from "@/ui/Skeleton";
import { Rows } from "../rows/Row";
import { SettingLine } from "../rows/SettingLine";
import { Accounts } from "./Accounts";
import { ModelList } from "./ModelList";

/** The model that answers, the person's own accounts, and all models that may be chosen. */
export function ModelsSection() {
  const { t } = useTranslation("settings");
  const settings = useQuery(settingsQuery());
  const models = useQuery(modelsQuery);
  const me = useMe();
  const failed = [settings, models].find((query) => query.error && !query.data);
  if (failed) return <ErrorNote error={failed.error} onRetry={() => void failed.refetch()} />;
  const setting = settingOf(settings.data, "model");
  if (!settings.data || !setting || !models.data) return <Skeleton rows={3} className="h-24" />;
  return (
    <>
      <Section title={t("navModels")} note={t("modelsNote")}>
        <Rows>
          <SettingLine setting={setting} layer="user" generation={settings.data.generation} />
        </Rows>
      </Section>
      <Accounts editable={mayWork(me)} accounts={models.data.accounts} providers={models.data.providers} />
      <Section title={t("offeredModels")} note={t("offeredNote")}>
        <ModelList models={models.data.models} asOf={models.dataUpdatedAt} />
      </Section>
    </>
  );
}
