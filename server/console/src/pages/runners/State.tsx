import { useTranslation } from "react-i18next";
import type { Runner } from "@/api/schema";
import { told } from "@/i18n/told";
import { Badge } from "@/ui/Badge";
import { Dot, type DotState } from "@/ui/Dot";
import { Ago } from "@/ui/Time";
import { type RunnerState, stateOf } from "./order";

const DOTS: Record<RunnerState, DotState> = { online: "good", away: "warn", never: "off", locked: "bad", refused: "bad" };

/** A runner's state: its dot, its word, and since when it is away. */
export function State({ runner }: { runner: Runner }) {
  const { t } = useTranslation("runners");
  const state = stateOf(runner);
  return (
    <span className="inline-flex items-center gap-1.5 whitespace-nowrap">
      <Dot state={DOTS[state]} />
      {t(state)}
      {state === "away" && runner.last_seen && (
        <>
          <span aria-hidden>·</span>
          <Ago at={runner.last_seen} />
        </>
      )}
    </span>
  );
}

/** The words about a runner that stand beside its name. */
export function Marks({ runner }: { runner: Runner }) {
  const { t } = useTranslation("runners");
  return (
    <>
      {runner.draining && <Badge tone="warn">{runner.drained_by ? t("drainingBy", { name: runner.drained_by }) : t("draining")}</Badge>}
      {runner.pool && <Badge>{t("pool", { backend: runner.pool.backend })}</Badge>}
      {runner.ephemeral && <Badge>{t("ephemeral")}</Badge>}
    </>
  );
}

/** What is wrong with a runner, and what to do; nothing where it is well. */
export function Trouble({ runner }: { runner: Runner }) {
  const { t } = useTranslation("runners");
  const words = [
    runner.locked ? t("lockedWhy") : undefined,
    stateOf(runner) === "refused" ? runner.refused && told(runner.refused) : undefined,
    runner.pool?.problem ? t("poolProblem", { reason: told(runner.pool.problem) }) : undefined,
    runner.server_went_back ? t("wentBack") : undefined,
  ].filter((one) => typeof one === "string");
  if (words.length === 0) return null;
  return (
    <div className="text-dense text-bad">
      {words.map((one) => (
        <p key={one} className="wrap-anywhere">
          {one}
        </p>
      ))}
    </div>
  );
}
