import { useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { useMe } from "@/api/me";
import type { MessageAccepted } from "@/api/schema";
import { Button } from "@/ui/Button";
import { AnswerCard } from "./AnswerCard";
import { showAnswer, useAnswer } from "./answers";
import { Box } from "./Box";
import { ModeChip } from "./chips/ModeChip";
import { ModelChip } from "./chips/ModelChip";
import { FolderChip } from "./chips/FolderChip";
import { PlaceChip } from "./chips/PlaceChip";
import { putBack, setDraft, useDraft } from "./draft";
import { onMessageSent, type Outgoing, useOutbox } from "./outbox";
import { OutgoingRows } from "./OutgoingRows";
import { useImages } from "./useImages";

/** An earlier message that is being edited. */
export interface Editing {
  /** The turn of the message. */
  turn: string;
  /** The message's text, as far as it was changed. */
  text: string;
  onText: (text: string) => void;
  /** Runs when the person sends, before the message goes: it goes back in the conversation. */
  before?: () => Promise<unknown>;
}

/** What the input of a conversation is told by its page. */
export interface ComposerProps {
  /** The session; undefined for one that the first message begins. */
  session: string | undefined;
  /** True while a turn of the session works. */
  working: boolean;
  /** True while a question of the session's agent waits for a person. */
  waits: boolean;
  /** What works now, in words, such as `cargo test on laptop`: what *Stop* would stop. */
  stops?: string | undefined;
  /** Why nothing can be sent, such as for a session that was deleted. */
  disabledReason?: string | undefined;
  /** Puts the text of an earlier message into the input. What stood there comes back once that is done. */
  editing?: Editing | undefined;
  /** Called when the edited message was sent, or the person gave up. */
  onEditDone?: (() => void) | undefined;
  /** Called for ↑ in an empty input: the page answers with `editing`. */
  onEditLast?: (() => void) | undefined;
  /** Called once the server has a message. */
  onSent?: ((sent: MessageAccepted) => void) | undefined;
}

/** Where a person writes to an agent, and what counts for the answer: place, mode and model. */
export function Composer(props: ComposerProps) {
  const { session, disabledReason, editing, onEditDone, onSent } = props;
  const { t } = useTranslation(["chat", "common"]);
  const user = useMe()?.user.id ?? "";
  const draft = useDraft(user, session);
  const outgoing = useOutbox(user, session);
  const images = useImages(session);
  const answer = useAnswer(session);
  const area = useRef<HTMLTextAreaElement>(null);

  useEffect(() => {
    if (!session || !onSent) return;
    return onMessageSent((of, sent) => of === session && onSent(sent));
  }, [session, onSent]);

  const focus = () => area.current?.focus();
  const giveBack = (text: string) => putBack(user, session, text);
  const takeBack = (message: Outgoing) => {
    giveBack(message.text);
    images.putBack(message.images);
    focus();
  };
  const disabled = disabledReason !== undefined;
  return (
    <div className="flex w-full flex-col gap-2">
      {session && answer && <AnswerCard answer={answer} onClose={() => showAnswer(session, undefined)} />}
      {session && <OutgoingRows user={user} session={session} messages={outgoing} onEdit={takeBack} onRemoved={focus} />}
      {editing && (
        <div className="flex items-center justify-between gap-2 pl-3 text-dense text-muted">
          <p>{t("inputEditing")}</p>
          <Button size="sm" look="quiet" onClick={onEditDone}>
            {t("common:cancel")}
          </Button>
        </div>
      )}
      <Box
        {...props}
        key={session ?? "new"}
        area={area}
        user={user}
        images={images}
        text={editing ? editing.text : draft}
        editing={editing}
        onText={editing ? editing.onText : (text) => setDraft(user, session, text)}
        onGiveBack={giveBack}
      />
      {disabled ? (
        <p role="status" className="px-3 text-dense text-muted">
          {disabledReason}
        </p>
      ) : (
        <div className="flex min-w-0 flex-wrap items-center gap-1">
          <span className="mr-auto flex min-w-0 items-center gap-1">
            <PlaceChip session={session} />
            {session === undefined && <FolderChip />}
          </span>
          <span className="flex min-w-0 items-center gap-1">
            <ModeChip session={session} />
            <ModelChip session={session} />
          </span>
        </div>
      )}
    </div>
  );
}
