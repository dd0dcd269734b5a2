import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ArrowLeft, Ellipsis } from "lucide-react";
import { type ReactNode, useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { sessionQuery } from "@/api/sessions";
import { sessionUsageQuery } from "@/api/turns";
import { compact, dollars } from "@/format/number";
import { useTitle } from "@/state/title";
import type { Facts } from "@/transcript/facts";
import type { Tokens } from "@/transcript/model";
import { IconButton } from "@/ui/Button";
import { SessionMenu } from "../list/SessionMenu";

/** The head of a conversation: its title, what it cost, and what can be done with it. `live`: its log was read to the end. */
export function Header({ session, facts, live, actions }: { session: string; facts: Facts; live: boolean; actions?: ReactNode }) {
  const { t } = useTranslation("transcript");
  const { data } = useQuery(sessionQuery(session));
  const title = data?.title || facts.title || t("untitled");
  useTitle(title);
  return (
    <header className="flex h-14 shrink-0 items-center gap-2 border-b border-line bg-surface pr-3 pl-4 max-md:pl-1">
      <Link to="/chat" aria-label={t("backToChats")} className="touchable inline-flex size-8 items-center justify-center rounded-control text-muted hover:bg-hover md:hidden">
        <ArrowLeft aria-hidden className="size-4" />
      </Link>
      <div className="min-w-0 flex-1">
        <h1 className="truncate font-semibold">{title}</h1>
        <p className="min-h-4 truncate text-meta text-muted tabular-nums">
          <Cost session={session} facts={facts} live={live} />
        </p>
      </div>
      {actions}
      {data && <SessionMenu session={data} trigger={<IconButton icon={Ellipsis} label={t("chatMenu")} />} />}
    </header>
  );
}

/** The tokens and the cost of the session. */
function Cost({ session, facts, live }: { session: string; facts: Facts; live: boolean }) {
  const { t, i18n } = useTranslation("transcript");
  const queries = useQueryClient();
  const query = sessionUsageQuery(session);
  const { data } = useQuery(query);
  const { usage } = facts;
  const summed = useRef<Tokens | undefined>(undefined);
  // Each answer of the model costs something; those of the past are in the first sum.
  useEffect(() => {
    if (!live) return;
    if (summed.current && summed.current !== usage) void queries.invalidateQueries({ queryKey: ["sessions", "usage", session] });
    summed.current = usage;
  }, [queries, session, usage, live]);
  if (!data || data.total.calls === 0) return null;
  const { tokens, cost_micros, unpriced, calls } = data.total;
  const count = compact(tokens.fresh + tokens.cached + tokens.cache_written + tokens.output, i18n.language);
  const cost = unpriced < calls ? dollars(cost_micros / 1e6, i18n.language) : undefined;
  return cost ? t("tokensCost", { tokens: count, cost }) : t("tokensOnly", { tokens: count });
}
