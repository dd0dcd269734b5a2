import { CloudOff, RotateCw } from "lucide-react";
import { useTranslation } from "react-i18next";
import { ProblemError } from "@/api/problem";
import { Button } from "@/ui/Button";
import { cx } from "@/ui/class";
import { ErrorNote } from "@/ui/ErrorNote";
import { isOnItsWay, type Outgoing, sendAgain, takeBack } from "./outbox";

interface OutgoingProps {
  user: string;
  session: string;
  messages: readonly Outgoing[];
  /** Puts a message that was taken back into the input. */
  onEdit: (message: Outgoing) => void;
  /** Called when a message was taken back for good. */
  onRemoved: () => void;
}

/** Why a message does not go yet. */
function awayWords(error: unknown): "inputSignedOut" | "inputTryingAgain" | "inputWaiting" {
  if (!(error instanceof ProblemError) || error.isUnreachable) return "inputTryingAgain";
  return error.status === 401 ? "inputSignedOut" : "inputWaiting";
}

/** The messages that the server does not have yet, and what is the matter with them. */
export function OutgoingRows({ user, session, messages, onEdit, onRemoved }: OutgoingProps) {
  const { t } = useTranslation(["chat", "common"]);
  if (messages.length === 0) return null;
  return (
    <ul aria-label={t("inputOutgoing")} className="flex flex-col gap-2">
      {messages.map((message, place) => (
        <li key={message.id} className="rounded-card border border-line bg-surface px-3 py-2">
          <div className="flex items-start gap-3">
            <p className="line-clamp-3 min-w-0 flex-1 text-muted wrap-anywhere whitespace-pre-wrap">{message.text}</p>
            <p role="status" className="late flex shrink-0 items-center gap-1 text-meta text-faint">
              {message.state === "sending" && (place === 0 ? t("inputSending") : t("inputBehind"))}
              {message.state === "away" && (
                <>
                  <CloudOff aria-hidden className="size-3.5" />
                  {t(awayWords(message.error))}
                </>
              )}
            </p>
          </div>
          {message.state === "refused" && <ErrorNote error={message.error} title={t("inputNotSent")} className="mt-2" />}
          {!isOnItsWay(message, place) && (
            <div className={cx("mt-2 flex flex-wrap gap-2", message.state === "sending" && "late")}>
              {message.state === "refused" && (
                <Button size="sm" icon={RotateCw} onClick={() => sendAgain(user, session, message.id)}>
                  {t("common:tryAgain")}
                </Button>
              )}
              <Button size="sm" onClick={() => takeBack(user, session, message.id) && onEdit(message)}>
                {t("inputTakeBack")}
              </Button>
              <Button size="sm" look="quiet" onClick={() => takeBack(user, session, message.id) && onRemoved()}>
                {t("common:remove")}
              </Button>
              {message.state === "away" && awayWords(message.error) === "inputTryingAgain" && <span className="self-center text-meta text-faint">{t("inputMayHave")}</span>}
            </div>
          )}
        </li>
      ))}
    </ul>
  );
}
