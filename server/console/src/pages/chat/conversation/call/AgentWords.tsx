import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { waitingQuery } from "@/api/approvals";
import { mayWork, useMe } from "@/api/me";
import { stopTurn } from "@/api/turns";
import { compact } from "@/format/number";
import type { CallAgent } from "@/transcript/model";
import { Button } from "@/ui/Button";
import { cx } from "@/ui/class";
import { sayFailed } from "@/ui/Toast";

/** The agent of a call: its name, which leads to its conversation, and its end. One that works can be stopped alone. */
export function AgentWords({ agent }: { agent: CallAgent }) {
  const { t, i18n } = useTranslation("transcript");
  const { ended } = agent;
  const me = useMe();
  const asks = useQuery(waitingQuery).data?.approvals.some(({ session }) => session === agent.session);
  const end = ended && { count: ended.steps, tokens: compact(ended.tokens, i18n.language) };
  return (
    <p className="flex flex-wrap items-center gap-x-2 border-t border-line px-3 py-1.5 text-dense text-muted">
      <Link to="/chat/$session" params={{ session: agent.session }} search={(before) => ({ ...before, new: undefined })} className="font-medium text-accent">
        {agent.name}
      </Link>
      <span className={cx(!ended && asks && "text-warn")}>{ended ? t(`agent_${ended.outcome}`) : t(asks ? "agentAsksYou" : "agentWorks")}</span>
      {!ended && mayWork(me) && <StopAgent session={agent.session} name={agent.name} />}
      {end && <span className="tabular-nums">{t("agentUsed", end)}</span>}
    </p>
  );
}

/** Stops the agent and what it runs; the turn that waits for it goes on. It is stopped once the log says so. */
function StopAgent({ session, name }: { session: string; name: string }) {
  const { t } = useTranslation("transcript");
  const [asked, setAsked] = useState(false);
  const stop = async () => {
    setAsked(true);
    try {
      await stopTurn(session);
    } catch (error) {
      setAsked(false);
      sayFailed(t("stopFailed"), error);
    }
  };
  return (
    <Button size="sm" className="ml-auto" busy={asked} aria-label={t("stopAgentNamed", { name })} title={t("stopAgentHint")} onClick={() => void stop()}>
      {asked ? t("stopping") : t("stop")}
    </Button>
  );
}
