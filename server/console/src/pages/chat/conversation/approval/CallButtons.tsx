import { useState } from "react";
import { useTranslation } from "react-i18next";
import { mayWork, useMe } from "@/api/me";
import type { Answer, QuestionCall, QuestionPlan } from "@/api/schema";
import { whole } from "@/transcript/safe";
import { Button } from "@/ui/Button";
import { Field, Input, Textarea } from "@/ui/Field";
import type { Answering } from "./useAnswer";

/** The way in which a question is being answered: by a button, or by words that are written. */
export type Way = "buttons" | "always" | "words" | "command";

/** The longest words to the agent, and the longest rule or command, in characters. */
const MOST_WORDS = 4000;
const MOST_RULE = 1000;

interface CallButtonsProps {
  /** The question as the server asks it, letter by letter: a person may change its command or its rule. */
  question: QuestionCall | QuestionPlan;
  way: Way;
  setWay: (way: Way) => void;
  answering: Answering;
  send: (answer: Answer) => void;
}

/** The ways to answer whether a call, or a plan, may be carried out. */
export function CallButtons({ question, way, setWay, answering, send }: CallButtonsProps) {
  const { t } = useTranslation("transcript");
  const me = useMe();
  const isBusy = answering.sending !== undefined || answering.loading;
  if (answering.sending) {
    return (
      <p role="status" className="px-4 pb-2 text-dense text-muted">
        {t("answerSending")}
      </p>
    );
  }
  if (!mayWork(me)) return null;
  const back = () => setWay("buttons");
  if (way === "always" && question.kind === "call") {
    return (
      <Written
        key="always"
        form="line"
        begin={question.rule ?? ""}
        label={t("ruleLabel")}
        hint={t("ruleHint")}
        verb={t("alwaysAllow")}
        busy={isBusy}
        onBack={back}
        onSend={(rule) => send({ outcome: "allowed", rule })}
      />
    );
  }
  if (way === "command" && question.kind === "call") {
    return <Written key="command" form="program" begin={question.text} label={t("commandLabel")} hint={t("commandHint")} verb={t("runChanged")} busy={isBusy} onBack={back} onSend={(command) => send({ outcome: "allowed", command })} />;
  }
  if (way === "words") {
    return <Written key="words" form="words" begin="" label={t("whyLabel")} hint={t("whyHint")} verb={t("deny")} busy={isBusy} onBack={back} onSend={(words) => send({ outcome: "denied", words })} />;
  }
  return (
    <div className="flex flex-wrap gap-2 px-4 pb-3">
      {question.kind === "call" ? (
        <>
          <Button look="primary" disabled={isBusy} onClick={() => send({ outcome: "allowed" })}>
            {t("allowOnce")}
          </Button>
          {question.rule && (
            <Button disabled={isBusy} onClick={() => setWay("always")} title={whole(question.rule)} className="max-w-64">
              <span className="truncate">{t("alwaysFor", { rule: whole(question.rule) })}</span>
            </Button>
          )}
          {question.editable && !question.cut && (
            <Button disabled={isBusy} onClick={() => setWay("command")}>
              {t("changeCommand")}
            </Button>
          )}
        </>
      ) : (
        <>
          <Button look="primary" disabled={isBusy} onClick={() => send({ outcome: "allowed", mode: "ask" })}>
            {t("acceptAsk")}
          </Button>
          <Button disabled={isBusy} onClick={() => send({ outcome: "allowed", mode: "auto" })}>
            {t("acceptAuto")}
          </Button>
        </>
      )}
      <Button disabled={isBusy} onClick={() => send({ outcome: "denied" })}>
        {t("deny")}
      </Button>
      <Button look="quiet" disabled={isBusy} onClick={() => setWay("words")}>
        {t("denyWhy")}
      </Button>
    </div>
  );
}

interface WrittenProps {
  begin: string;
  label: string;
  hint?: string;
  verb: string;
  /** `words` are sent by Enter; a `program` of several lines takes Ctrl or ⌘ with it. */
  form: "line" | "words" | "program";
  busy: boolean;
  onBack: () => void;
  onSend: (text: string) => void;
}

/** An answer that is written. */
function Written({ begin, label, hint, verb, form, busy, onBack, onSend }: WrittenProps) {
  const { t } = useTranslation("common");
  const [text, setText] = useState(begin);
  const words = text.trim();
  return (
    <form
      className="flex flex-col gap-2 px-4 pb-3"
      onSubmit={(event) => {
        event.preventDefault();
        if (words !== "" && !busy) onSend(words);
      }}
    >
      <Field label={label} hint={hint}>
        {(control) =>
          form === "line" ? (
            <Input {...control} autoFocus maxLength={MOST_RULE} value={text} onChange={(event) => setText(event.target.value)} className="font-mono text-code" />
          ) : (
            <Textarea
              {...control}
              autoFocus
              rows={3}
              maxLength={MOST_WORDS}
              enterSubmits={form === "words"}
              value={text}
              onChange={(event) => setText(event.target.value)}
              className={form === "program" ? "font-mono text-code" : undefined}
            />
          )
        }
      </Field>
      <div className="flex flex-wrap gap-2">
        <Button type="submit" look="primary" disabled={words === ""} busy={busy}>
          {verb}
        </Button>
        <Button onClick={onBack}>{t("back")}</Button>
      </div>
    </form>
  );
}
