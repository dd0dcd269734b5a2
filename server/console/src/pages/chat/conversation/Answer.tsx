import { memo } from "react";
import { useTranslation } from "react-i18next";
import { Markdown } from "@/markdown/Markdown";
import { bytes } from "@/format/number";
import type { AnswerItem } from "@/transcript/model";
import { useFold } from "./context";
import { Thoughts } from "./Thoughts";

/** The longest answer that is shown as Markdown, in characters. */
const MOST_MARKDOWN = 200_000;

/** The most of the rest that is shown as plain text. */
const MOST_PLAIN = 1_000_000;

/** An answer of the model: bare text. */
export const Answer = memo(function Answer({ item }: { item: AnswerItem }) {
  const { t } = useTranslation("transcript");
  const { record } = item;
  const isOnlyThoughts = item.parts.every((part) => part.kind === "thoughts");
  return (
    <article aria-label={t("answer")} className="flex flex-col gap-2">
      {item.parts.map((part) =>
        part.kind === "thoughts" ? (
          <Thoughts key={part.id} id={`${item.id}:${part.id}`} part={part} tookMs={isOnlyThoughts && record ? record.tookMs : 0} />
        ) : (
          <Text key={part.id} id={`${item.id}:${part.id}`} text={part.text} open={part.open} />
        ),
      )}
      {record?.finish === "length" && <p className="text-dense text-warn">{t("answerCut")}</p>}
      {record?.finish === "cancelled" && <p className="text-dense text-muted">{t("answerStopped")}</p>}
      {record?.limit && <p className="text-dense text-muted">{t("answerLimit")}</p>}
    </article>
  );
});

function Text({ id, text, open }: { id: string; text: string; open: boolean }) {
  const { t } = useTranslation("transcript");
  const [all, toggle] = useFold(id, false);
  if (text.length <= MOST_MARKDOWN) return <Markdown text={text} open={open} />;
  const rest = text.slice(MOST_MARKDOWN, MOST_MARKDOWN + MOST_PLAIN);
  return (
    <>
      <Markdown text={text.slice(0, MOST_MARKDOWN)} />
      {all && <pre className="text-code wrap-anywhere whitespace-pre-wrap">{rest}</pre>}
      <button type="button" aria-expanded={all} onClick={toggle} className="touchable self-start text-dense text-accent underline">
        {all ? t("showLess") : t("answerRest", { size: bytes(text.length - MOST_MARKDOWN) })}
      </button>
      {all && text.length > MOST_MARKDOWN + MOST_PLAIN && <p className="text-dense text-muted">{t("answerTooLong")}</p>}
    </>
  );
}
