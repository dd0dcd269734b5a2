import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Info, OctagonAlert, RotateCcw, ScissorsLineDashed } from "lucide-react";
import { Fragment, memo, type ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { waitingQuery } from "@/api/approvals";
import { compact } from "@/format/number";
import { duration } from "@/format/time";
import { told } from "@/i18n/told";
import { Markdown } from "@/markdown/Markdown";
import type { Note, NoteItem, TurnEnd } from "@/transcript/model";
import { cx } from "@/ui/class";
import { ApprovalCard } from "./approval/ApprovalCard";
import { useOutcomeWords } from "./approval/ApprovalNote";
import { Disclosure } from "./Disclosure";
import { useConversation, useFold } from "./context";

type NoteOf<T extends Note["type"]> = Extract<Note, { type: T }>;

/** A quiet note beside the conversation. */
export const Notes = memo(function Notes({ item }: { item: NoteItem }) {
  const { note } = item;
  switch (note.type) {
    case "turn_ended":
      return <Ended note={note} />;
    case "compacted":
      return <Compacted id={item.id} note={note} />;
    case "rewound":
      return <Rewound note={note} />;
    default:
      return <Plain note={note} />;
  }
});

function Line({ children, className }: { children: ReactNode; className?: string }) {
  return <p className={cx("text-meta text-muted wrap-anywhere", className)}>{children}</p>;
}

function Plain({ note }: { note: Exclude<Note, NoteOf<"turn_ended" | "compacted" | "rewound">> }) {
  const { t, i18n } = useTranslation("transcript");
  const { people, me, onExtensions } = useConversation();
  const outcomeWords = useOutcomeWords();
  const number = (count: number) => compact(count, i18n.language);
  switch (note.type) {
    case "model_changed":
      return <Line>{note.before ? t("modelChanged", { model: note.model, before: note.before }) : t("modelNow", { model: note.model })}</Line>;
    case "left_out":
      return <Line>{t("leftOut", { count: note.results + note.gone + note.shortened })}</Line>;
    case "masked":
      return <Line>{t("masked", { tokens: number(note.tokens) })}</Line>;
    case "notice":
      return null;
    case "cancel": {
      if (note.why) return <Line>{t(`stoppedWhy_${note.why}`)}</Line>;
      const name = people[note.by];
      return <Line>{note.by === me || !name ? t("stopAsked") : t("stopAskedBy", { name })}</Line>;
    }
    case "resumed":
      return <Line>{t("resumed")}</Line>;
    case "instructions":
      return (
        <>
          {note.files && <Line>{note.files.length > 0 ? t("instructions", { files: note.files.map((file) => (file.cut ? t("instructionsCut", { path: file.path }) : file.path)).join(t("listComma", { ns: "common" })) }) : t("instructionsNone")}</Line>}
          {note.unread.map((why, index) => (
            <Line key={index}>{t("notRead", { why: told(why) })}</Line>
          ))}
        </>
      );
    case "extensions": {
      const kinds = ["skills", "agents", "hooks", "servers", "plugins"] as const;
      const counted = kinds.filter((kind) => note[kind] > 0).map((kind) => t(`extensions_${kind}`, { count: note[kind] }));
      const list = counted.join(t("listComma", { ns: "common" }));
      const isAll = note.untrusted.length === 0 && note.unread.length === 0;
      return (
        <>
          {counted.length > 0 && <Line>{t("extensions", { list })}</Line>}
          {counted.length === 0 && isAll && <Line>{t("extensionsNone")}</Line>}
          {note.untrusted.map((path) => (
            <Line key={path} className="text-warn">
              {t("extensionsUntrusted", { path })}{" "}
              <button type="button" className="touchable font-medium text-accent hover:underline" aria-label={t("extensionsLookAt", { path })} onClick={onExtensions}>
                {t("extensionsLook")}
              </button>
            </Line>
          ))}
          {note.unread.map((why, index) => (
            <Line key={index}>{t("extensionUnread", { why: told(why) })}</Line>
          ))}
        </>
      );
    }
    case "hook": {
      const did = note.failed ? t("hook_failed", { action: note.action }) : t(`hook_${note.decision ?? "says"}`, { action: note.action });
      return <Line className={note.failed ? "text-warn" : ""}>{note.why ? t("hookWhy", { did, why: told(note.why) }) : did}</Line>;
    }
    case "tool_servers":
      return (
        <>
          {note.servers.length === 0 && <Line>{t("toolServersNone")}</Line>}
          {note.servers.map(({ name, tools, failed, leftOut }) => (
            <Fragment key={name}>
              {failed === null ? (
                <Line>{t("toolServer", { name, count: tools })}</Line>
              ) : (
                <Line className="text-warn">{t("toolServerFailed", { name, why: told(failed) })}</Line>
              )}
              {leftOut.map((why, index) => (
                <Line key={index}>{t("toolServerLeftOut", { name, why: told(why) })}</Line>
              ))}
            </Fragment>
          ))}
        </>
      );
    case "untrusted_rules":
      return <Line className="text-warn">{t("untrustedRules", { path: note.path })}</Line>;
    case "prompt_changed":
      return <Line>{t("promptChanged")}</Line>;
    case "agent_briefed":
      return (
        <Line>
          {t("agentBriefed", { name: note.name, task: note.task })}{" "}
          <Link to="/chat/$session" params={{ session: note.parent }} search={(before) => ({ ...before, new: undefined })} className="text-accent">
            {t("agentParent")}
          </Link>
        </Line>
      );
    case "agent_asks":
      return <AgentAsks name={note.name} session={note.session} approval={note.approval} />;
    case "chat_started":
      return (
        <Line>
          {t("chatStarted")}{" "}
          <Link to="/chat/$session" params={{ session: note.session }} search={(before) => ({ ...before, new: undefined })} className="text-accent">
            {note.title}
          </Link>
        </Line>
      );
    case "chat_origin":
      return (
        <Line>
          {t("chatOrigin")}{" "}
          <Link to="/chat/$session" params={{ session: note.parent }} search={(before) => ({ ...before, new: undefined })} className="text-accent">
            {t("agentParent")}
          </Link>
        </Line>
      );
    case "worktree":
      return <Line>{t(note.state === "made" ? "worktreeMade" : "worktreeKept", { path: note.path, branch: note.branch })}</Line>;
    case "settled":
      return <Line>{note.task !== null ? t("settledTask", { number: note.task, how: told(note.summary) }) : t("settledLate", { how: told(note.summary) })}</Line>;
    case "answered":
      return <Line>{outcomeWords(note.answered.answer, note.answered.name)}</Line>;
  }
}

/** The end of a turn: its figures where it completed, its reason where it did not. */
function Ended({ note }: { note: TurnEnd }) {
  const { t, i18n } = useTranslation("transcript");
  const tokens = compact(note.usage.input + note.usage.output, i18n.language);
  const time = duration(note.tookMs);
  const figures = note.usage.input + note.usage.output > 0 ? t("turnFigures", { time, tokens }) : time;
  if (note.outcome === "completed") return <Line className="text-faint">{figures}</Line>;
  if (note.outcome === "cancelled") return <Line>{t("turnStopped", { figures })}</Line>;
  return (
    <div role="note" className="flex items-start gap-2 rounded-control bg-bad-soft px-3 py-2 text-dense">
      <OctagonAlert aria-hidden className="mt-0.5 size-4 shrink-0 text-bad" />
      <div className="min-w-0">
        <p className="font-medium">{note.outcome === "failed" ? t("turnFailed") : t("turnInterrupted")}</p>
        {note.reason && <p className="wrap-anywhere whitespace-pre-wrap">{told(note.reason)}</p>}
        <p className="text-meta text-muted">{figures}</p>
      </div>
    </div>
  );
}

function Compacted({ id, note }: { id: string; note: NoteOf<"compacted"> }) {
  const { t, i18n } = useTranslation("transcript");
  const [open, toggle] = useFold(id, false);
  const words = t("compacted", { before: compact(note.before, i18n.language), after: compact(note.after, i18n.language) });
  return (
    <Disclosure icon={ScissorsLineDashed} open={open} onToggle={toggle} head={<span className="text-muted">{words}</span>}>
      <div className="flex flex-col gap-3 border-l-2 border-line pl-4 text-muted">
        <p className="flex items-center gap-2 text-dense">
          <Info aria-hidden className="size-4 shrink-0" />
          {t("compactedHint")}
        </p>
        {note.noSummary !== null && <p className="text-dense text-warn">{t("noSummary", { why: told(note.noSummary) })}</p>}
        {note.carried !== "" && <Markdown text={note.carried} />}
        {note.summary !== "" && <Markdown text={note.summary} />}
      </div>
    </Disclosure>
  );
}

function Rewound({ note }: { note: NoteOf<"rewound"> }) {
  const { t } = useTranslation("transcript");
  const { people, me } = useConversation();
  const name = people[note.by];
  return (
    <p className="flex items-center gap-2 text-meta text-muted">
      <RotateCcw aria-hidden className="size-3.5 shrink-0" />
      <span className="min-w-0 truncate">{note.by === me || !name ? t("wentBack", { before: note.before }) : t("wentBackBy", { name, before: note.before })}</span>
    </p>
  );
}

/** The question of an agent that works for this chat. It is answered here: the turn may wait for it. */
function AgentAsks({ name, session, approval }: { name: string; session: string; approval: string }) {
  const { t } = useTranslation("transcript");
  const asked = useQuery(waitingQuery).data?.approvals.find(({ id }) => id === approval);
  return (
    <>
      <Line className={cx(asked && "text-warn")}>
        {t(asked ? "agentAsks" : "agentAsked", { name })}{" "}
        <Link to="/chat/$session" params={{ session }} search={(before) => ({ ...before, new: undefined })} className="text-accent">
          {t("agentChat")}
        </Link>
      </Line>
      {asked && (
        <div className="mt-2">
          <ApprovalCard approval={asked} />
        </div>
      )}
    </>
  );
}
