import { WrapText } from "lucide-react";
import { memo, useState } from "react";
import { useTranslation } from "react-i18next";
import "@/styles/code.css";
import { IconButton } from "./Button";
import { cx } from "./class";
import { CopyButton } from "./CopyLine";
import { type CodeSpan, useHighlighted } from "./highlight";

/** The lines that a folded block shows. */
const FOLDED_LINES = 24;

/** The most lines that a block shows at all. */
const MOST_LINES = 2000;

/** The most letters of one line that are shown. */
const MOST_COLUMNS = 4000;

interface CodeProps {
  text: string;
  /** The name of its language, such as `rust`, or a file's ending; empty if it has none. */
  language: string;
  /** True while more of it may come: it is coloured after that. */
  open?: boolean;
  /** The number of its first line; without it lines have no numbers. */
  firstLine?: number;
  /** The words in its head, in place of the language. */
  title?: string;
}

/** A block of code: its language, copying, wrapping; a long one is folded. */
export const Code = memo(function Code({ text: given, language, open = false, firstLine, title }: CodeProps) {
  const { t } = useTranslation("transcript");
  // Empty lines at the end are room for nothing.
  const text = given.replace(/\n+$/, "");
  const [wraps, setWraps] = useState(false);
  const [unfolded, setUnfolded] = useState(false);
  // A fence may say more after the language: `rust,ignore`.
  const name = (language.match(/^[\w+#.-]{1,24}/)?.[0] ?? "").toLowerCase();
  const coloured = useHighlighted(text, name, !open);
  const lines = text.split("\n");
  const most = unfolded ? MOST_LINES : FOLDED_LINES;
  const isLong = lines.length > FOLDED_LINES + 2;
  const shown = isLong ? lines.slice(0, most) : lines;
  return (
    <figure className="max-w-full min-w-0 overflow-hidden rounded-card border border-line bg-surface">
      <figcaption className="flex h-8 items-center gap-1 border-b border-line bg-canvas pr-1 pl-3">
        <span className="min-w-0 flex-1 truncate font-mono text-meta text-muted">{title ?? (name || t("code"))}</span>
        <IconButton size="sm" icon={WrapText} label={t("wrapLines")} aria-pressed={wraps} onClick={() => setWraps(!wraps)} className={wraps ? "text-accent" : ""} />
        <CopyButton text={text} label={t("copyCode")} />
      </figcaption>
      <pre tabIndex={0} aria-label={title ?? (name || t("code"))} className={cx("overflow-x-auto px-3 py-2 text-code", wraps ? "wrap-anywhere whitespace-pre-wrap" : "whitespace-pre")}>
        <code className="block min-w-fit">
          {shown.map((line, index) => (
            <Line key={index} text={line} spans={coloured?.[index]} number={firstLine === undefined ? undefined : firstLine + index} />
          ))}
        </code>
      </pre>
      {isLong && (
        <button
          type="button"
          aria-expanded={unfolded}
          onClick={() => setUnfolded(!unfolded)}
          className="touchable w-full border-t border-line px-3 py-1 text-left text-meta text-muted hover:bg-hover hover:text-ink"
        >
          {unfolded ? t("showLess") : t("showAllLines", { count: lines.length })}
        </button>
      )}
      {unfolded && lines.length > MOST_LINES && <p className="border-t border-line px-3 py-1 text-meta text-muted">{t("linesLeftOut", { count: lines.length - MOST_LINES })}</p>}
    </figure>
  );
});

const Line = memo(function Line({ text, spans, number }: { text: string; spans: readonly CodeSpan[] | undefined; number: number | undefined }) {
  const isCut = text.length > MOST_COLUMNS;
  return (
    <span className="block">
      {number !== undefined && <span className="mr-3 inline-block w-10 text-right text-faint select-none">{number}</span>}
      {spans && !isCut
        ? spans.map((span, index) => (
            <span key={index} className={span.look}>
              {span.text}
            </span>
          ))
        : isCut
          ? `${text.slice(0, MOST_COLUMNS)}…`
          : text}
      {"\n"}
    </span>
  );
});
