import { ArrowUp } from "lucide-react";
import { type KeyboardEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { idempotencyKey } from "@/api/client";
import { sendMessage } from "@/api/messages";
import type { MessageAccepted } from "@/api/schema";
import { IconButton } from "@/ui/Button";
import { sayFailed } from "@/ui/Toast";

/** An earlier message that is being edited. */
export interface Editing {
  /** The turn of the message. */
  turn: string;
  /** The message's text. */
  text: string;
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

/** Where a person writes to an agent. */
export function Composer({ session, disabledReason, onSent }: ComposerProps) {
  const { t } = useTranslation("chat");
  const [text, setText] = useState("");
  const send = async () => {
    if (!session || !text.trim()) return;
    try {
      onSent?.(await sendMessage(session, { text, client_id: idempotencyKey(), while_working: "steer" }));
      setText("");
    } catch (error) {
      sayFailed(t("inputNotSent"), error);
    }
  };
  const hear = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    void send();
  };
  return (
    <div className="flex items-end gap-2 rounded-card border border-line-strong bg-surface p-2">
      <textarea
        aria-label={t("inputLabel")}
        className="min-w-0 flex-1 resize-none bg-transparent p-1 outline-none"
        disabled={disabledReason !== undefined}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={hear}
      />
      <IconButton icon={ArrowUp} look="primary" label={t("inputSend")} onClick={() => void send()} />
    </div>
  );
}
