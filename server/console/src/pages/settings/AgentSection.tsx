import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { isAdmin, useMe } from "@/api/me";
import { runnersQuery } from "@/api/runners";
import type { Setting, Settings } from "@/api/schema";
import { settingOf, settingsQuery } from "@/api/settings";
import { ErrorNote } from "@/ui/ErrorNote";
import { Section } from "@/ui/Page";
import { Skeleton } from "@/ui/Skeleton";
import { isTenantOnly, modeOf } from "./rows/facts";
import { Rows } from "./rows/Row";
import { SettingLine } from "./rows/SettingLine";
import { useModeText } from "./rows/value-text";

/** Settings with a part of their own on the page. */
const ELSEWHERE = ["runner", "model"];

/** How free agents are, how long a turn may be, and whatever else can be set. */
export function AgentSection() {
  const { t } = useTranslation("settings");
  const admin = isAdmin(useMe());
  const { data, error, refetch } = useQuery(settingsQuery());
  if (error && !data) return <ErrorNote error={error} onRetry={() => void refetch()} />;
  if (!data) return <Skeleton rows={4} className="h-20" />;
  const rest = data.settings.filter((setting) => !ELSEWHERE.includes(setting.name));
  return (
    <>
      <Section title={t("navAgent")} note={t("agentNote")}>
        <Rows>
          {rest
            .filter((setting) => !isTenantOnly(setting.name))
            .sort(modeFirst)
            .map((setting) => (
              <SettingLine key={setting.name} setting={setting} layer="user" generation={data.generation} fact={setting.name === "mode" ? <ModeNow settings={data} /> : undefined} />
            ))}
        </Rows>
      </Section>
      <Section
        title={t("limitsTitle")}
        note={t("limitsNote")}
        actions={
          admin && (
            <Link to="/admin/everyone" className="touchable inline-flex items-center text-dense font-medium text-accent hover:underline">
              {t("openEveryone")}
            </Link>
          )
        }
      >
        <Rows>
          {rest
            .filter((setting) => isTenantOnly(setting.name))
            .map((setting) => (
              <SettingLine key={setting.name} setting={setting} layer="user" generation={data.generation} fact={setting.name === "max_mode" ? <Ceiling setting={setting} /> : undefined} />
            ))}
        </Rows>
      </Section>
    </>
  );
}

function modeFirst(a: Setting, b: Setting): number {
  return Number(b.name === "mode") - Number(a.name === "mode");
}

const MODE_SENTENCES = { plan: "modePlanWhat", ask: "modeAskWhat", auto: "modeAutoWhat", full: "modeFullWhat" } as const;

/** The mode under which the next turn works, with what that means. */
function ModeNow({ settings }: { settings: Settings }) {
  const { t } = useTranslation("settings");
  const text = useModeText();
  const setting = settingOf(settings, "mode");
  const mode = modeOf(setting?.in_effect);
  if (!mode) return null;
  const bounded = setting?.value && setting.value !== mode;
  return <p className="mt-1 text-dense text-muted">{t(bounded ? "modeBounded" : "modeNow", { mode: text(mode), what: t(MODE_SENTENCES[mode]) })}</p>;
}

/** The ceiling of the machine of the active runner, where it has one of its own. */
function Ceiling({ setting }: { setting: Setting }) {
  const { t } = useTranslation("settings");
  const text = useModeText();
  const me = useMe();
  const { data } = useQuery(runnersQuery);
  const runner = data?.runners.find((one) => one.id === me?.active_runner);
  if (runner?.ceiling) return <p className="mt-1 text-dense text-muted">{t("machineCeiling", { runner: runner.name, mode: text(runner.ceiling) })}</p>;
  if (setting.in_effect && setting.in_effect !== setting.value) return <p className="mt-1 text-dense text-muted">{t("ceilingNow", { mode: text(setting.in_effect) })}</p>;
  return null;
}
