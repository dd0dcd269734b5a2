import { CircleHelp } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Answer, QuestionFree } from "@/api/schema";
import { Button } from "@/ui/Button";
import { Field, Textarea } from "@/ui/Field";
import type { Answering } from "./useAnswer";

/** The longest answer, in characters. */
const MOST_WORDS = 16_000;

interface FreeQuestionProps {
  question: QuestionFree;
  answering: Answering;
  send: (answer: Answer) => void;
  /** True if no answer counts any more. */
  closed: boolean;
}

/** A question of the agent's own: answers to choose from, or words. */
export function FreeQuestion({ question, answering, send, closed }: FreeQuestionProps) {
  const { t } = useTranslation("transcript");
  const [text, setText] = useState("");
  const isBusy = answering.sending !== undefined || answering.loading;
  const words = text.trim();
  return (
    <>
      <header className="flex items-start gap-2.5 px-4 pt-3 pb-3">
        <CircleHelp aria-hidden className="mt-0.5 size-4 shrink-0 text-warn" />
        <p className="min-w-0 flex-1 font-medium wrap-anywhere whitespace-pre-wrap">{question.text}</p>
      </header>
      {!closed && (
        <div className="flex flex-col gap-3 px-4 pb-3">
          {(question.choices ?? []).length > 0 && (
            <div className="flex flex-wrap gap-2">
              {question.choices?.map((choice, index) => (
                <Button key={index} disabled={isBusy} onClick={() => send({ outcome: "said", text: choice })} className="h-auto min-h-8 max-w-full py-1 text-left whitespace-normal">
                  <span className="wrap-anywhere">{choice}</span>
                </Button>
              ))}
            </div>
          )}
          <form
            className="flex flex-col gap-2"
            onSubmit={(event) => {
              event.preventDefault();
              if (words !== "") send({ outcome: "said", text: words });
            }}
          >
            <Field label={(question.choices ?? []).length > 0 ? t("ownWords") : t("yourAnswer")}>
              {(control) => (
                <Textarea
                  {...control}
                  rows={2}
                  maxLength={MOST_WORDS}
                  value={text}
                  enterSubmits
                  onChange={(event) => setText(event.target.value)}
                  className="min-h-14"
                />
              )}
            </Field>
            <Button type="submit" look="primary" disabled={words === "" || isBusy} className="self-start">
              {answering.sending ? t("answerSending") : t("sendAnswer")}
            </Button>
          </form>
        </div>
      )}
    </>
  );
}
