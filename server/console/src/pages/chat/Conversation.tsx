import { Link, useParams } from "@tanstack/react-router";
import { MessageCircleOff, MessageCirclePlus, PanelRightOpen, Puzzle } from "lucide-react";
import { lazy, Suspense, useCallback, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { mayWork, useMe } from "@/api/me";
import { ProblemError } from "@/api/problem";
import { useLinkState } from "@/live/use";
import type { Facts } from "@/transcript/facts";
import type { Snapshot } from "@/transcript/snapshot";
import { transcriptOf } from "@/transcript/store";
import { useTranscript } from "@/transcript/use";
import { IconButton } from "@/ui/Button";
import { Empty } from "@/ui/Empty";
import { ErrorNote } from "@/ui/ErrorNote";
import { Skeleton } from "@/ui/Skeleton";
import { Composer } from "./composer/Composer";
import { Announcer } from "./conversation/Announcer";
import { ApprovalCard } from "./conversation/approval/ApprovalCard";
import { aboutOf } from "./conversation/call/about";
import { ConversationContext, type Conversation as Context } from "./conversation/context";
import { Header } from "./conversation/Header";
import { ItemList, type ItemListHandle } from "./conversation/ItemList";
import { QuestionBar } from "./conversation/QuestionBar";
import { RewindDialog } from "./conversation/RewindDialog";
import { RowMaker } from "./conversation/rows";
import { useEditing } from "./conversation/useEditing";
import { Working } from "./conversation/Working";
import { Panel } from "./panel/Panel";
import { usePanel } from "./panel/usePanel";

const SessionExtensions = lazy(() => import("./panel/SessionExtensions"));

/** The form of a session's id. The server would not understand another one. */
const SESSION = /^ses_[0-7][0-9a-hjkmnp-tv-z]{25}$/;

/** The conversation of the address. */
export function Conversation() {
  const { session } = useParams({ from: "/frame/chat/$session" });
  if (!SESSION.test(session)) return <NoSuchChat />;
  // Another session is another page: nothing of the one before stays.
  return <OneConversation key={session} session={session} />;
}

function OneConversation({ session }: { session: string }) {
  const { t } = useTranslation("transcript");
  const snapshot = useTranscript(session);
  const me = useMe();
  const [maker] = useState(() => new RowMaker());
  const list = useRef<ItemListHandle>(null);
  const edit = useEditing(me?.user.id ?? "", session, snapshot);
  const [isPanelOpen, openPanel] = usePanel();
  const [showsExtensions, showExtensions] = useState(false);
  const { facts } = snapshot;
  const stops = useStops(facts, snapshot);
  const rows = maker.rows(snapshot.items);
  const live = useLinkState().state === "live" && snapshot.caughtUp;
  const works = facts.working !== null || facts.queue.length > 0;
  const onExtensions = useCallback(() => showExtensions(true), []);
  const hold = useCallback(() => list.current?.hold(), []);
  const context = useMemo<Context>(
    () => ({ session, people: facts.people, me: me?.user.id, live, works, turn: facts.working?.turn, onFold: hold, onExtensions, onEdit: edit.ask }),
    [session, facts.people, me?.user.id, live, works, facts.working?.turn, hold, onExtensions, edit.ask],
  );
  const kept = useMemo(() => facts.approvals.flatMap((approval) => approval.item ?? []), [facts.approvals]);
  const editLast = () => {
    const last = snapshot.items.findLast((item) => item.kind === "message" && item.rewindable);
    if (last?.kind === "message" && last.turn !== null && !works) edit.ask(last.turn, last.text);
  };
  const reveal = (id: string) => {
    const approval = facts.approvals.find((one) => one.id === id);
    list.current?.reveal(approval?.item ?? "", `approval-${id}`);
  };
  if (snapshot.status === "refused" && snapshot.items.length === 0) return <Refused session={session} snapshot={snapshot} />;
  const loose = facts.approvals.filter((approval) => approval.item === null);
  return (
    <ConversationContext value={context}>
      <div className="flex min-h-0 min-w-0 flex-1">
        <main className="flex min-h-0 min-w-0 flex-1 flex-col">
          <Header
            session={session}
            facts={facts}
            live={snapshot.caughtUp}
            actions={
              <>
                <IconButton icon={Puzzle} label={t("openExtensions")} onClick={onExtensions} />
                {!isPanelOpen && <IconButton icon={PanelRightOpen} label={t("openPanel")} onClick={() => openPanel(true)} />}
              </>
            }
          />
          {snapshot.status === "loading" ? (
            <Loading seq={snapshot.seq} />
          ) : rows.length === 0 ? (
            <div className="min-h-0 flex-1 overflow-y-auto">
              <Empty icon={MessageCirclePlus} title={t("emptyChat")}>
                {t("emptyChatHint")}
              </Empty>
            </div>
          ) : (
            <ItemList ref={list} rows={rows} kept={kept} end={<Working working={facts.working} />} />
          )}
          <div className="mx-auto w-full max-w-4xl shrink-0 px-4 pb-3 md:px-6">
            {loose.map((approval) => (
              <div key={approval.id} className="mb-2 max-h-[50dvh] overflow-y-auto">
                <ApprovalCard approval={{ id: approval.id, question: approval.question, until: new Date(approval.until).toISOString() }} />
              </div>
            ))}
            <QuestionBar ids={facts.approvals.map((approval) => approval.id)} onShow={reveal} />
            {snapshot.status === "refused" && snapshot.problem?.status !== 404 && <NotServed session={session} snapshot={snapshot} />}
            <Composer
              session={session}
              working={facts.working !== null}
              waits={facts.approvals.length > 0}
              stops={stops}
              disabledReason={snapshot.status === "refused" ? t("notServed") : mayWork(me) ? undefined : t("viewerOnlyHint", { ns: "common" })}
              editing={edit.editing}
              onEditDone={edit.done}
              onEditLast={editLast}
              onSent={() => list.current?.toEnd()}
            />
          </div>
        </main>
        {isPanelOpen && <Panel session={session} facts={facts} onClose={() => openPanel(false)} />}
      </div>
      {showsExtensions && (
        <Suspense>
          <SessionExtensions session={session} onClose={() => showExtensions(false)} />
        </Suspense>
      )}
      <RewindDialog open={edit.asked !== undefined} onClose={edit.dismiss} onChoose={edit.choose} />
      <Announcer snapshot={snapshot} />
    </ConversationContext>
  );
}

/** What *Stop* would stop, in words. */
function useStops(facts: Facts, snapshot: Snapshot): string | undefined {
  const { t } = useTranslation("transcript");
  const { activity } = facts.working ?? {};
  if (activity?.what !== "calls") return undefined;
  const calls = activity.calls.map((id) => snapshot.items.findLast((item) => item.id === id)).filter((item) => item?.kind === "call");
  const [call] = calls;
  if (!call) return undefined;
  const about = aboutOf(call).slice(0, 60);
  if (calls.length > 1) return t("stopsMany", { about, count: calls.length - 1 });
  return call.place ? t("stopsOn", { about, runner: call.place.runnerName }) : about;
}

function Loading({ seq }: { seq: number }) {
  const { t } = useTranslation("transcript");
  return (
    <div className="mx-auto min-h-0 w-full max-w-4xl flex-1 overflow-hidden px-4 pt-4">
      <Skeleton rows={6} className="h-16" />
      {seq > 0 && <p className="late px-2 text-meta text-muted">{t("loadingEvents", { count: seq })}</p>}
    </div>
  );
}

/** The server does not serve the session: it was deleted, is another person's, or never was. */
function Refused({ session, snapshot }: { session: string; snapshot: Snapshot }) {
  const { t } = useTranslation("transcript");
  const { problem } = snapshot;
  if (problem && problem.status !== 404 && problem.status !== 403) {
    return (
      <main className="flex min-w-0 flex-1 items-center justify-center p-4">
        <ErrorNote error={new ProblemError(problem)} title={t("notLoaded")} onRetry={() => transcriptOf(session).retry()} className="w-full max-w-lg" />
      </main>
    );
  }
  return <NoSuchChat />;
}

function NoSuchChat() {
  const { t } = useTranslation("transcript");
  return (
    <main className="flex min-w-0 flex-1 items-center justify-center">
      <Empty
        icon={MessageCircleOff}
        title={t("notFound")}
        action={
          <Link to="/chat" className="font-medium text-accent underline">
            {t("backToChats")}
          </Link>
        }
      >
        {t("notFoundHint")}
      </Empty>
    </main>
  );
}

/** What was shown stays readable, though the server does not serve it any more. */
function NotServed({ session, snapshot }: { session: string; snapshot: Snapshot }) {
  const { t } = useTranslation("transcript");
  const error = snapshot.problem ? new ProblemError(snapshot.problem) : new Error(t("notServed"));
  return <ErrorNote error={error} onRetry={() => transcriptOf(session).retry()} className="mb-2" />;
}
