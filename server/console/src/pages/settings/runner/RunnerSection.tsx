import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { mayWork, meQuery } from "@/api/me";
import { runnersQuery } from "@/api/runners";
import type { Me, Setting } from "@/api/schema";
import { settingOf, settingsQuery } from "@/api/settings";
import { State } from "@/pages/runners/State";
import { ErrorNote } from "@/ui/ErrorNote";
import { Card, Section } from "@/ui/Page";
import { Skeleton } from "@/ui/Skeleton";
import { isSetIn } from "../rows/facts";
import { RefusedNote, ResetButton } from "../rows/Row";
import { SettingMeta } from "../rows/SettingMeta";
import { type Save, useSave } from "../rows/useSave";
import { PlaceFacts } from "./PlaceFacts";
import { PlaceList } from "./PlaceList";
import { type PlaceToUse, placesOf } from "./places";

/** Where the person's tools run, first in words, then as a list to choose from. */
export function RunnerSection() {
  const { t } = useTranslation("settings");
  const settings = useQuery(settingsQuery());
  const runners = useQuery(runnersQuery);
  const me = useQuery(meQuery).data;
  const setting = settingOf(settings.data, "runner");
  const save = useSave("runner", "user", settings.data?.generation ?? 0);
  const failed = [settings, runners].find((query) => query.error && !query.data);
  if (failed) return <ErrorNote error={failed.error} onRetry={() => void failed.refetch()} />;
  if (!setting || !runners.data || !me) return <Skeleton rows={3} className="h-24" />;
  const places = placesOf(runners.data.runners, me);
  return (
    <>
      <Section title={t("navRunner")} note={t("runnerNote")}>
        <Card className="px-4 py-4">
          <InUse me={me} place={places.find((place) => place.inUse)} canChoose={places.length > 0} />
          <RunnerMeta setting={setting} save={save} />
        </Card>
      </Section>
      <Section
        title={t("yourRunners")}
        actions={
          <Link to="/runners" className="touchable inline-flex items-center text-dense font-medium text-accent hover:underline">
            {t("manageRunners")}
          </Link>
        }
      >
        <PlaceList places={places} pending={save.pending ?? undefined} onUse={save.save} />
      </Section>
    </>
  );
}

/** The place in use, in words. */
function InUse({ me, place, canChoose }: { me: Me; place: PlaceToUse | undefined; canChoose: boolean }) {
  const { t } = useTranslation("settings");
  const why = !mayWork(me) ? "noRunnerViewerWhy" : canChoose ? undefined : "noRunnerAtAllWhy";
  if (!me.active_runner_name) {
    return (
      <div>
        <p className="text-title">{t("noRunnerInUse")}</p>
        <p className="mt-1 text-dense text-muted">{t(why ?? "noRunnerInUseWhy")}</p>
      </div>
    );
  }
  if (me.active_runner_removed || !place) {
    return (
      <div>
        <p className="text-title wrap-anywhere">{t(me.active_runner_removed ? "runnerRemoved" : "runnerUnseen", { name: me.active_runner_name })}</p>
        <p className="mt-1 text-dense text-warn">{t(why ?? "runnerRemovedWhy")}</p>
      </div>
    );
  }
  return (
    <div>
      <p className="text-dense text-muted">{t("workOn")}</p>
      <p className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <span className="text-title font-medium wrap-anywhere">{place.name}</span>
        <span className="text-dense text-muted">
          <State runner={place.runner} />
        </span>
      </p>
      <PlaceFacts place={place} className="mt-1 text-dense text-muted" />
      {(place.problem ?? place.runner.refused) && <p className="mt-2 text-dense text-warn wrap-anywhere">{place.problem ?? place.runner.refused}</p>}
      {!place.runner.online && !place.runner.refused && <p className="mt-2 text-dense text-warn">{t("runnerAwayWhy")}</p>}
    </div>
  );
}

function RunnerMeta({ setting, save }: { setting: Setting; save: Save }) {
  const { t } = useTranslation("settings");
  return (
    <>
      <div className="mt-2 flex flex-wrap items-center gap-x-2 text-meta text-faint">
        {save.saving ? <span role="status">{t("saving")}</span> : <SettingMeta setting={setting} layer="user" />}
        {isSetIn("user", setting) && !save.saving && (
          <ResetButton name={t("labelRunner")} onClick={() => save.save(null)} />
        )}
      </div>
      {save.error !== null && <RefusedNote error={save.error} className="mt-2" />}
    </>
  );
}
