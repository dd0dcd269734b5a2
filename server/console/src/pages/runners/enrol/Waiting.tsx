import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { useTranslation } from "react-i18next";
import { useMe } from "@/api/me";
import { joinTokensQuery } from "@/api/join-tokens";
import { useRunners } from "@/api/runners";
import { Dot } from "@/ui/Dot";
import { IsolationMark } from "../Isolation";
import { UseButton } from "../UseButton";
import { arrivals } from "./arrivals";
import type { MadeToken } from "./useEnrolment";

interface WaitingProps {
  made: MadeToken;
  expired: boolean;
  /** Called once the machine, or all of a fleet, has enrolled. */
  onArrived: () => void;
  onClose: () => void;
}

/** Waits for the machine in sight: the list of runners tells who came, and the list of tokens how many of a fleet. */
export function Waiting({ made, expired, onArrived, onClose }: WaitingProps) {
  const { t } = useTranslation("runners");
  const me = useMe();
  const runners = useRunners() ?? [];
  const tokens = useQuery(joinTokensQuery).data;
  const came = arrivals(runners, made, me?.user.name);
  const uses = made.terms.fleet ? Number(made.terms.uses) : 1;
  // A token whose uses are spent is in the list no more.
  const used = tokens?.find((token) => token.id === made.token.id)?.used ?? came.length;
  const all = came.length >= uses;
  useEffect(() => {
    if (all) onArrived();
  }, [all, onArrived]);
  return (
    <section aria-live="polite" className="rounded-card border border-line">
      {!all && !expired && (
        <p className="works flex items-center gap-2 overflow-hidden px-4 py-3 text-dense">
          <Dot state="busy" />
          {made.terms.fleet ? t("waitingFleet", { used, uses }) : t("waiting")}
        </p>
      )}
      {came.map((runner) => (
        <div key={runner.id} className="flex flex-wrap items-center gap-3 border-t border-line px-4 py-3 first:border-t-0">
          <Dot state={runner.online ? "good" : "busy"} />
          <p className="min-w-0 flex-1 text-dense wrap-anywhere">
            {runner.online ? t("connected", { name: runner.name }) : t("enrolled", { name: runner.name })}
            {runner.active && <> {t("isActive")}</>}
          </p>
          <IsolationMark runner={runner} />
          {!runner.active && !made.terms.fleet && <UseButton runner={runner} primary words={t("useIt")} onUsed={onClose} />}
        </div>
      ))}
      {expired && !all && came.length === 0 && <p className="px-4 py-3 text-dense text-muted">{t("nobodyCame")}</p>}
    </section>
  );
}
