import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Inbox as Tray } from "lucide-react";
import { type RefObject, useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { answeredQuery, waitingQuery } from "@/api/approvals";
import { mayWork, useMe } from "@/api/me";
import type { Approval } from "@/api/schema";
import { isTyping } from "@/frame/shortcuts";
import { ApprovalCard } from "@/pages/chat/conversation/approval/ApprovalCard";
import { AFTER_QUESTIONS, WAITING_CARDS } from "@/pages/chat/conversation/approval/focus";
import { line } from "@/transcript/safe";
import { Empty } from "@/ui/Empty";
import { ErrorNote } from "@/ui/ErrorNote";
import { Page, Section } from "@/ui/Page";
import { Skeleton } from "@/ui/Skeleton";
import { Ago } from "@/ui/Time";

/** Every question of the person's agents: those that wait, the most urgent first, and those that were answered last. */
export function Inbox() {
  const { t } = useTranslation("inbox");
  const waiting = useQuery(waitingQuery);
  const all = useQuery(answeredQuery);
  const answered = all.data?.approvals.filter((approval) => approval.outcome) ?? [];
  const me = useMe();
  const urgent = (waiting.data?.approvals ?? []).toSorted((a, b) => Date.parse(a.until) - Date.parse(b.until));
  const list = useRef<HTMLDivElement>(null);
  useMoves(list);
  return (
    <Page title={t("title")} meta={urgent.length > 0 && t("waiting", { count: urgent.length })}>
      <div ref={list} tabIndex={-1} {...{ [AFTER_QUESTIONS]: "" }} className="outline-none">
        {waiting.isError && <ErrorNote error={waiting.error} title={t("failed")} onRetry={() => void waiting.refetch()} />}
        {waiting.isPending && <Skeleton rows={2} className="h-40" />}
        {waiting.isSuccess && urgent.length === 0 && (
          <Empty icon={Tray} title={t("nothing")}>
            {mayWork(me) ? t("nothingHint") : t("nothingViewer")}
          </Empty>
        )}
        {urgent.map((approval) => (
          <Question key={approval.id} approval={approval} />
        ))}
      </div>
      {(answered.length > 0 || all.isError) && (
        <Section title={t("answered")}>
          {all.isError && <ErrorNote error={all.error} title={t("answeredFailed")} onRetry={() => void all.refetch()} />}
          <ul className="divide-y divide-line">
            {answered.slice(0, ANSWERED_AT_MOST).map((approval) => (
              <li key={approval.id} className="flex min-h-10 flex-wrap items-center gap-x-3 py-2 text-dense">
                <ChatLink approval={approval} />
                <span className="min-w-0 flex-1 truncate text-muted max-md:order-last max-md:basis-full">{subject(approval)}</span>
                <span className="shrink-0 text-meta text-muted max-md:ml-auto">
                  {approval.outcome && t(approval.outcome.answer.outcome, { name: approval.outcome.by ?? "" })} · <Ago at={approval.outcome?.at ?? approval.asked_at} />
                </span>
              </li>
            ))}
          </ul>
        </Section>
      )}
    </Page>
  );
}

/** The answered questions that are shown; the chats have all. */
const ANSWERED_AT_MOST = 20;

function Question({ approval }: { approval: Approval }) {
  const { t } = useTranslation("inbox");
  return (
    <article className="mb-6">
      <header className="mb-2 flex items-baseline gap-2 text-dense">
        <h2 className="flex min-w-0">
          <ChatLink approval={approval} />
        </h2>
        <span className="shrink-0 text-meta text-muted">
          {t("asked")} <Ago at={approval.asked_at} />
        </span>
      </header>
      <ApprovalCard approval={approval} />
    </article>
  );
}

function ChatLink({ approval }: { approval: Approval }) {
  return (
    <Link to="/chat/$session" params={{ session: approval.session }} className="min-w-0 max-w-72 truncate font-medium hover:underline">
      {approval.session_title}
    </Link>
  );
}

/** The thing that was asked, on one line. */
function subject({ question }: Approval): string {
  if (question.kind !== "call") return line(question.text);
  const paths = (question.paths ?? []).map(({ path }) => path);
  return line(`${question.tool} ${paths.join(", ") || question.text}`);
}

/** `j` and `k` move the focus from card to card. */
function useMoves(list: RefObject<HTMLDivElement | null>): void {
  useEffect(() => {
    const hear = (event: KeyboardEvent) => {
      if ((event.key !== "j" && event.key !== "k") || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const cards = [...(list.current?.querySelectorAll<HTMLElement>(WAITING_CARDS) ?? [])];
      const at = cards.findIndex((card) => card.contains(document.activeElement));
      const next = cards[event.key === "j" ? Math.min(at + 1, cards.length - 1) : Math.max(at - 1, 0)];
      next?.focus();
      next?.scrollIntoView({ block: "nearest" });
      if (next) event.preventDefault();
    };
    document.addEventListener("keydown", hear);
    return () => document.removeEventListener("keydown", hear);
  }, [list]);
}
