import { useNavigate, useSearch } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { mayWork, useMe } from "@/api/me";
import { useRunners } from "@/api/runners";
import { OnlyLooks } from "@/frame/OnlyLooks";
import { Select } from "@/ui/Field";
import { Card, Page } from "@/ui/Page";
import { Browser } from "./Browser";

/** The files of a runner's workspace. The runner and the folder stand in the address. */
export function FilesPage() {
  const { t } = useTranslation("files");
  const { runner, path = "" } = useSearch({ from: "/frame/files" });
  const navigate = useNavigate({ from: "/files" });
  const me = useMe();
  const runners = useRunners() ?? [];
  const shown = runner ?? me?.active_runner_name ?? undefined;
  return (
    <Page
      wide
      title={t("title")}
      actions={
        <Select
          aria-label={t("runner")}
          value={shown ?? ""}
          onChange={(event) => void navigate({ search: { runner: event.target.value } })}
          className="w-auto!"
        >
          {!shown && <option value="">{t("noRunner")}</option>}
          {runners.map((one) => (
            <option key={one.id} value={one.name}>
              {t(one.online ? "runnerOnline" : "runnerAway", { name: one.name })}
            </option>
          ))}
        </Select>
      }
    >
      <Card>
        {mayWork(me) ? (
          <Browser key={shown} runner={shown} path={path} onGo={(next) => void navigate({ search: { ...(runner ? { runner } : {}), ...(next ? { path: next } : {}) } })} />
        ) : (
          <OnlyLooks />
        )}
      </Card>
    </Page>
  );
}
