import { useTranslation } from "react-i18next";
import type { Runner } from "@/api/schema";
import { Dot } from "@/ui/Dot";
import { Ago } from "@/ui/Time";

/** Whether a runner is online, in a dot and in words. */
export function RunnerState({ runner }: { runner: Runner }) {
  const { t } = useTranslation("settings");
  const bad = runner.locked || Boolean(runner.refused);
  return (
    <span className="inline-flex items-center gap-1.5">
      <Dot state={bad ? "bad" : runner.online ? "good" : "warn"} />
      {runner.locked ? t("stateLocked") : runner.refused ? t("stateRefused") : runner.online ? t("stateOnline") : t("stateAway")}
      {!bad && !runner.online && runner.last_seen && (
        <span>
          <span aria-hidden>· </span>
          {t("lastSeen")} <Ago at={runner.last_seen} />
        </span>
      )}
    </span>
  );
}
