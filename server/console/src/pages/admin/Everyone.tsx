import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { isAdmin, useMe } from "@/api/me";
import { modelsQuery } from "@/api/models";
import { permissionsQuery } from "@/api/permissions";
import { everyonesSettingsQuery } from "@/api/settings";
import { SettingLine } from "@/pages/settings/rows/SettingLine";
import { isTenantOnly } from "@/pages/settings/rows/facts";
import { Rows } from "@/pages/settings/rows/Row";
import { ErrorNote } from "@/ui/ErrorNote";
import { Page, Section } from "@/ui/Page";
import { Skeleton } from "@/ui/Skeleton";
import { EveryonesAccounts } from "./everyone/EveryonesAccounts";
import { EveryonesExtensions } from "./everyone/EveryonesExtensions";
import { EveryonesRules } from "./everyone/EveryonesRules";

/** What counts for everyone of the tenant: limits, the values of those who chose none, models, rules and extensions. */
export function Everyone() {
  const { t } = useTranslation("settings");
  const me = useMe();
  const editable = isAdmin(me);
  const settings = useQuery(everyonesSettingsQuery);
  const models = useQuery(modelsQuery);
  const permissions = useQuery(permissionsQuery);
  if (settings.error && !settings.data) {
    return (
      <Page title={t("everyone")}>
        <ErrorNote error={settings.error} onRetry={() => void settings.refetch()} />
      </Page>
    );
  }
  if (!settings.data) {
    return (
      <Page title={t("everyone")}>
        <Skeleton rows={4} className="h-20" />
      </Page>
    );
  }
  const { generation } = settings.data;
  const limits = settings.data.settings.filter((setting) => isTenantOnly(setting.name));
  const usual = settings.data.settings.filter((setting) => !isTenantOnly(setting.name));
  return (
    <Page title={t("everyone")} meta={me?.tenant}>
      {!editable && <p className="mb-6 rounded-control bg-accent-soft px-3 py-2 text-dense">{t("readOnly")}</p>}
      <Section title={t("everyoneLimits")} note={t("everyoneLimitsNote")}>
        <Rows>
          {limits.map((setting) => (
            <SettingLine key={setting.name} setting={setting} layer="tenant" generation={generation} editable={editable} />
          ))}
        </Rows>
      </Section>
      <Section title={t("everyoneUsual")} note={t("everyoneUsualNote")}>
        <Rows>
          {usual.map((setting) => (
            <SettingLine key={setting.name} setting={setting} layer="tenant" generation={generation} editable={editable} />
          ))}
        </Rows>
      </Section>
      <EveryonesAccounts query={models} editable={editable} />
      <EveryonesRules query={permissions} editable={editable} />
      <EveryonesExtensions editable={editable} />
    </Page>
  );
}
