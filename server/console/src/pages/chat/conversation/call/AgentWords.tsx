import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { compact } from "@/format/number";
import type { CallAgent } from "@/transcript/model";

/** The agent of a call: its name, which leads to its conversation, and its end. */
export function AgentWords({ agent }: { agent: CallAgent }) {
  const { t, i18n } = useTranslation("transcript");
  const { ended } = agent;
  const end = ended && { steps: ended.steps, tokens: compact(ended.tokens, i18n.language) };
  return (
    <p className="flex flex-wrap items-center gap-x-2 border-t border-line px-3 py-1.5 text-dense text-muted">
      <Link to="/chat/$session" params={{ session: agent.session }} search={(before) => ({ ...before, new: undefined })} className="font-medium text-accent">
        {agent.name}
      </Link>
      <span>{ended ? t(`agent_${ended.outcome}`) : t("agentWorks")}</span>
      {end && <span className="tabular-nums">{t("agentUsed", end)}</span>}
    </p>
  );
}
