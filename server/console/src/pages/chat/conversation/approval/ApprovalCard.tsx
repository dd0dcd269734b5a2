import { type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Answer, Approval } from "@/api/schema";
import { duration, moment } from "@/format/time";
import { question as harmless } from "@/transcript/approval";
import type { Request } from "@/transcript/request";
import { ErrorNote } from "@/ui/ErrorNote";
import { useCountdown } from "@/ui/Time";
import { ApprovalNote } from "./ApprovalNote";
import { CallButtons, type Way } from "./CallButtons";
import { CallQuestion } from "./CallQuestion";
import { useHandsOn } from "./focus";
import { FreeQuestion } from "./FreeQuestion";
import { PlanQuestion } from "./PlanQuestion";
import { useSight } from "./sight";
import { useAnswer } from "./useAnswer";

/** A question as the card needs it: of the API, or of a transcript, which knows no digest. */
export type ShownApproval = Pick<Approval, "id" | "question" | "until"> & Partial<Pick<Approval, "digest" | "outcome">>;

/** The time for which a card that has just come, or was just given the focus, hears nothing, in milliseconds: the press was meant for something else. */
const DEAF_MS = 500;

/** An hour; a deadline that is nearer counts down by the second. */
const NEAR_MS = 3_600_000;

interface ApprovalCardProps {
  approval: ShownApproval;
  /** All that the call asks for, where the question has only its beginning. */
  request?: Request | undefined;
}

/**
 * A question of an agent to a person, with what is needed to judge it, and the ways to answer.
 *
 * It answers once, whatever is pressed how often. While the card itself has the focus, Enter allows and Esc denies.
 * The card never takes the focus by itself.
 */
export function ApprovalCard({ approval, request }: ApprovalCardProps) {
  const { t } = useTranslation("transcript");
  const [way, setWay] = useState<Way>("buttons");
  const answering = useAnswer(approval.id, approval.digest, !approval.outcome);
  const outcome = approval.outcome ?? answering.told?.outcome;
  const asked = answering.told?.question ?? approval.question;
  const question = useMemo(() => harmless(asked), [asked]);
  const left = useCountdown(outcome ? undefined : approval.until);
  const isOver = !outcome && left === 0;
  const { listens, startAgain } = useListens();
  const card = useRef<HTMLElement>(null);
  useSight(approval.id, card, !outcome);
  useHandsOn(card, !outcome);
  /** Takes the focus from a part that goes, if it came by keyboard: a click moves none. */
  const keepFocus = () => {
    if (card.current?.querySelector(":focus-visible")) card.current.focus();
  };
  const send = (answer: Answer) => {
    if (!listens() || isOver) return;
    keepFocus();
    answering.send(answer);
  };
  const goWay = (next: Way) => {
    if (next === "buttons") keepFocus();
    setWay(next);
  };
  const hear = (event: KeyboardEvent<HTMLElement>) => {
    if (event.repeat || event.nativeEvent.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const isTyped = (event.target as HTMLElement).matches("input, textarea, select");
    if (event.key === "Escape" && !outcome && question.kind !== "free") {
      event.preventDefault();
      event.stopPropagation();
      if (way !== "buttons") goWay("buttons");
      else if (!isTyped) send({ outcome: "denied" });
    } else if (event.key === "Enter" && event.target === event.currentTarget && question.kind === "call" && way === "buttons" && !outcome) {
      event.preventDefault();
      send({ outcome: "allowed" });
    }
  };
  return (
    <section
      ref={card}
      id={`approval-${approval.id}`}
      // Not absent once it is answered: the browser would take the focus away before it is handed on.
      tabIndex={outcome ? -1 : 0}
      aria-label={t("question")}
      onKeyDown={hear}
      onFocus={(event) => {
        if (event.target === event.currentTarget && !event.currentTarget.contains(event.relatedTarget)) startAgain();
      }}
      className="min-w-0 overflow-hidden rounded-card border-2 border-warn bg-surface data-answered:border data-answered:border-line"
      data-answered={outcome ? "" : undefined}
    >
      {question.kind === "call" && <CallQuestion question={question} request={request} />}
      {question.kind === "plan" && <PlanQuestion text={question.text} />}
      {question.kind === "free" && <FreeQuestion question={question} answering={answering} send={send} closed={Boolean(outcome) || isOver} />}
      {outcome ? (
        <ApprovalNote answered={{ answer: outcome.answer, name: outcome.by ?? "", at: Date.parse(outcome.at) }} />
      ) : (
        <>
          {answering.error !== undefined && <ErrorNote error={answering.error} title={t("answerFailed")} onRetry={answering.loading ? undefined : answering.reload} className="mx-4 mb-3" />}
          {asked.kind !== "free" && !isOver && <CallButtons question={asked} way={way} setWay={goWay} answering={answering} send={send} />}
          <p className="px-4 pb-3 text-meta text-muted">
            {isOver ? t("deadlinePassed") : left < NEAR_MS ? t("deadlineIn", { time: duration(left) }) : <Until at={approval.until} />}
          </p>
        </>
      )}
    </section>
  );
}

function Until({ at }: { at: string }) {
  const { t, i18n } = useTranslation("transcript");
  return t("deadlineAt", { time: moment(at, i18n.language) });
}

/** Tells whether the card was in sight, and had the focus, long enough to be answered. */
function useListens(): { listens: () => boolean; startAgain: () => void } {
  const since = useRef(Number.POSITIVE_INFINITY);
  const startAgain = () => {
    since.current = performance.now();
  };
  useEffect(startAgain, []);
  return { listens: () => performance.now() - since.current >= DEAF_MS, startAgain };
}
