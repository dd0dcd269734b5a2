import { useTranslation } from "react-i18next";
import type { Answer } from "@/api/schema";
import { serverTime } from "@/state/clock";
import { moment, timeOfDay } from "@/format/time";

/** The outcome of a question in words. */
export function useOutcomeWords(): (answer: Answer, name: string) => string {
  const { t } = useTranslation("transcript");
  return (answer, name) => {
    const by = name === "" ? "_alone" : "";
    switch (answer.outcome) {
      case "allowed":
        if (answer.rule) return t(`allowedAlways${by}`, { name, rule: answer.rule });
        if (answer.command) return t(`allowedAs${by}`, { name, command: answer.command });
        return t(`allowed${by}`, { name });
      case "denied":
        return answer.words ? t(`deniedWords${by}`, { name, words: answer.words }) : t(`denied${by}`, { name });
      case "said":
        return t(`said${by}`, { name, words: answer.text });
      case "unanswered":
        return t(`unanswered_${answer.because}`);
    }
  };
}

/** Says who answered a question, how and when. */
export function ApprovalNote({ answered }: { answered: { readonly answer: Answer; readonly name: string; readonly at: number } }) {
  const { i18n } = useTranslation();
  const words = useOutcomeWords();
  const at = new Date(answered.at).toISOString();
  return (
    <p className="border-t border-line px-3 py-1.5 text-meta text-muted wrap-anywhere">
      {words(answered.answer, answered.name)} · <time dateTime={at} title={moment(at, i18n.language)}>{isToday(answered.at) ? timeOfDay(at, i18n.language) : moment(at, i18n.language)}</time>
    </p>
  );
}

function isToday(at: number): boolean {
  return new Date(at).toDateString() === new Date(serverTime()).toDateString();
}
