import { ChevronRight, TriangleAlert } from "lucide-react";
import { memo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Answer } from "@/api/schema";
import { stopOperation } from "@/api/operations";
import { duration } from "@/format/time";
import type { CallItem } from "@/transcript/model";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { cx } from "@/ui/class";
import { sayFailed } from "@/ui/Toast";
import { ApprovalNote } from "../approval/ApprovalNote";
import { useConversation, useFold } from "../context";
import { useNow } from "../time";
import { AgentWords } from "./AgentWords";
import { CallBody } from "./CallBody";
import { CallEndNote } from "./CallEndNote";
import { DiffCount } from "./FileChange";
import { aboutOf, iconOf, isFailure, isRunning, verbOf } from "./about";
import { PlaceWords } from "./PlaceWords";

/** A tool call: one line, which opens to what it asked for and what came of it. A failed one is open by itself. */
export const CallCard = memo(function CallCard({ item }: { item: CallItem }) {
  const { t } = useTranslation("transcript");
  const failed = isFailure(item);
  const [open, toggle] = useFold(item.id, failed || item.request.kind === "plan");
  const Icon = iconOf(item);
  const verb = verbOf(item);
  const running = isRunning(item);
  const { live } = useConversation();
  const words = aboutOf(item);
  return (
    <section aria-label={t("callOf", { tool: item.tool })} className="min-w-0 overflow-hidden rounded-card border border-line bg-surface">
      <div className={cx("flex items-center gap-2 pr-2 pl-3", running && live && "works")}>
        <button type="button" aria-expanded={open} onClick={toggle} className="touchable flex h-9 min-w-0 flex-1 items-center gap-2 text-left">
          <Icon aria-hidden className={cx("size-4 shrink-0", failed ? "text-bad" : "text-faint")} />
          {verb && <span className="shrink-0 text-dense text-muted">{t(verb)}</span>}
          <span className="min-w-0 truncate font-mono text-code">{words}</span>
          <DiffCount call={item} />
          <ChevronRight aria-hidden className={cx("size-3.5 shrink-0 text-faint transition-transform duration-100", open && "rotate-90")} />
        </button>
        {item.task !== null && <Badge>{t("taskNumber", { number: item.task })}</Badge>}
        <PlaceWords place={item.place} className="max-md:hidden" />
        {!open && item.place && item.request.kind === "shell" && <span className="max-w-20 shrink-0 truncate text-meta text-muted md:hidden">{item.place.runnerName}</span>}
        <State item={item} />
        {running && item.operation && <Stop operation={item.operation} inTurn={item.state === "running"} />}
      </div>
      {item.agent && <AgentWords agent={item.agent} />}
      {!open && running && <LastLine item={item} />}
      {item.approval?.answered && (open || !isPlainlyAllowed(item.approval.answered.answer)) && <ApprovalNote answered={item.approval.answered} />}
      {open && (
        <>
          {item.place && <PlaceWords place={item.place} className="block px-3 pb-2 md:hidden" />}
          <Proposed item={item} />
          <CallBody item={item} />
        </>
      )}
      {item.end?.finding && (
        <p className="flex items-center gap-2 border-t border-line bg-warn-soft px-3 py-1.5 text-dense text-warn">
          <TriangleAlert aria-hidden className="size-4 shrink-0" />
          {t("callFinding")}
        </p>
      )}
      <CallEndNote item={item} open={open} />
    </section>
  );
});

/** True for an answer that says no more than yes: then the folded card says nothing of it. */
function isPlainlyAllowed(answer: Answer): boolean {
  return answer.outcome === "allowed" && !answer.rule && !answer.command;
}

/** The command that the model asked for, where a person put another in its place. */
function Proposed({ item }: { item: CallItem }) {
  const { t } = useTranslation("transcript");
  const { question, answered } = item.approval ?? {};
  if (question?.kind !== "call" || answered?.answer.outcome !== "allowed" || !answered.answer.command) return null;
  return (
    <p className="border-t border-line px-3 py-1.5 text-meta text-muted wrap-anywhere whitespace-pre-wrap">
      {t("proposed")} <code>{question.text.trimEnd()}</code>
    </p>
  );
}

/** The elapsed time while it runs; then its duration, and its exit code where it tells something. */
function State({ item }: { item: CallItem }) {
  const { t } = useTranslation("transcript");
  const { end } = item;
  if (isRunning(item) && item.placedAt !== null) return <Elapsed since={item.placedAt} />;
  if (!end) return <span className="shrink-0 text-meta text-muted">{item.state === "left" ? t("callLeft") : t("callAsked")}</span>;
  const isCommand = item.request.kind === "shell";
  const failed = isFailure(item);
  const isOdd = end.outcome !== "completed" && end.outcome !== "background";
  return (
    <span className="flex shrink-0 items-center gap-2 text-meta text-muted tabular-nums">
      {end.durationMs >= 1000 && <span>{duration(end.durationMs)}</span>}
      {isCommand && end.exit !== null && <span className={cx(failed && "font-medium text-bad")}>{t("exit", { code: end.exit })}</span>}
      {isOdd && end.exit === null && <span className={cx(failed && "font-medium text-bad")}>{t(`outcome_${end.outcome}`)}</span>}
    </span>
  );
}

function Elapsed({ since }: { since: number }) {
  const { live } = useConversation();
  const now = useNow();
  return <span className={cx("shrink-0 text-meta tabular-nums", live ? "text-muted" : "text-faint")}>{duration(Math.max(0, now - since))}</span>;
}

/** The last line that a folded call wrote. Its height is kept from the begin. */
function LastLine({ item }: { item: CallItem }) {
  const last = item.output?.lines().findLast((line) => line.kind === "text" && line.spans.some((span) => span.text.trim() !== ""));
  const text = last?.kind === "text" ? last.spans.map((span) => span.text).join("") : "";
  if (item.request.kind !== "shell") return null;
  return <p className="mt-1.5 h-6 truncate px-3 pl-9 font-mono text-meta text-faint">{text || "\u00a0"}</p>;
}

/** Stops the call alone: a turn that waits for it goes on, and its model is told. It is stopped once the log says so. */
function Stop({ operation, inTurn }: { operation: string; inTurn: boolean }) {
  const { t } = useTranslation("transcript");
  const [asked, setAsked] = useState(false);
  const stop = async () => {
    setAsked(true);
    try {
      await stopOperation(operation);
    } catch (error) {
      setAsked(false);
      sayFailed(t("stopFailed"), error);
    }
  };
  return (
    <Button size="sm" busy={asked} title={inTurn ? t("stopCallHint") : t("stopTaskHint")} onClick={() => void stop()}>
      {asked ? t("stopping") : t("stop")}
    </Button>
  );
}
