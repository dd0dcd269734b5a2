import { memo, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { DiffLine } from "@/format/line-diff";
import "@/styles/code.css";
import { cx } from "./class";

/** The unchanged lines that stand around a change. */
const CONTEXT = 3;

/** The rows that are shown at first, and at all. */
const FIRST_ROWS = 200;
const MOST_ROWS = 4000;

/** The most letters of one line that are shown. */
const MOST_COLUMNS = 2000;

/** Consecutive rows: lines, or unchanged ones that are folded. */
type Part = { readonly folded: false; readonly lines: readonly DiffLine[] } | { readonly folded: true; readonly lines: readonly DiffLine[] };

interface DiffProps {
  /** The lines, as {@link lineDiff} tells them. */
  lines: readonly DiffLine[];
  /** The name of the file, for screen readers. */
  label: string;
}

/** A change of a text: its lines with their numbers where those are known, those that went and those that came. Unchanged ones far away are folded. */
export const Diff = memo(function Diff({ lines, label }: DiffProps) {
  const { t } = useTranslation("transcript");
  const [most, setMost] = useState(FIRST_ROWS);
  const parts = useMemo(() => partsOf(lines, most), [lines, most]);
  const numbered = useMemo(() => lines.some((line) => line.before !== null || line.after !== null), [lines]);
  const rest = lines.length - most;
  return (
    <div role="region" aria-label={label} tabIndex={0} className="overflow-x-auto bg-surface text-code">
      <table className="w-full border-collapse font-mono">
        {parts.map((part, index) => (
          <Rows key={`${most}.${index}`} part={part} numbered={numbered} />
        ))}
      </table>
      {rest > 0 &&
        (most < MOST_ROWS ? (
          <button type="button" onClick={() => setMost(MOST_ROWS)} className="touchable w-full px-3 py-1 text-left font-sans text-meta text-muted hover:bg-hover hover:text-ink">
            {t("showMoreLines", { count: Math.min(rest, MOST_ROWS - most) })}
          </button>
        ) : (
          <p className="px-3 py-1 font-sans text-meta text-muted">{t("linesLeftOut", { count: rest })}</p>
        ))}
    </div>
  );
});

function Rows({ part, numbered }: { part: Part; numbered: boolean }) {
  const { t } = useTranslation("transcript");
  const [open, setOpen] = useState(!part.folded);
  if (!open) {
    return (
      <tbody>
        <tr>
          <td colSpan={4} className="bg-canvas">
            <button type="button" onClick={() => setOpen(true)} className="touchable w-full px-3 py-0.5 text-left font-sans text-meta text-muted hover:bg-hover hover:text-ink">
              {t("unchangedLines", { count: part.lines.length })}
            </button>
          </td>
        </tr>
      </tbody>
    );
  }
  return (
    <tbody>
      {part.lines.map((line, index) => (
        <Row key={index} line={line} numbered={numbered} />
      ))}
    </tbody>
  );
}

const Row = memo(function Row({ line, numbered }: { line: DiffLine; numbered: boolean }) {
  const { t } = useTranslation("transcript");
  const isAdded = line.kind === "added";
  const isRemoved = line.kind === "removed";
  const number = "w-px pl-2 pr-1 text-right align-top text-faint select-none";
  return (
    <tr className={cx(isAdded && "bg-diff-add", isRemoved && "bg-diff-del")}>
      {numbered && <td className={number}>{line.before}</td>}
      {numbered && <td className={number}>{line.after}</td>}
      <td className={cx("w-px px-1 align-top select-none", isAdded ? "text-diff-add-mark" : isRemoved ? "text-diff-del-mark" : "text-faint")}>
        <span aria-hidden>{isAdded ? "+" : isRemoved ? "−" : " "}</span>
        {(isAdded || isRemoved) && <span className="sr-only">{isAdded ? t("lineAdded") : t("lineRemoved")}</span>}
      </td>
      <td className="pr-3 wrap-anywhere whitespace-pre-wrap">{line.text.length > MOST_COLUMNS ? `${line.text.slice(0, MOST_COLUMNS)}…` : line.text}</td>
    </tr>
  );
});

function partsOf(all: readonly DiffLine[], most: number): Part[] {
  const lines = all.slice(0, most);
  const near = new Uint8Array(lines.length);
  lines.forEach((line, index) => {
    if (line.kind !== "same") near.fill(1, Math.max(0, index - CONTEXT), index + CONTEXT + 1);
  });
  const parts: { folded: boolean; lines: DiffLine[] }[] = [];
  lines.forEach((line, index) => {
    const folded = near[index] === 0;
    const last = parts.at(-1);
    if (last && last.folded === folded) last.lines.push(line);
    else parts.push({ folded, lines: [line] });
  });
  // A fold of one or two lines would take their room.
  return parts.map((part) => (part.lines.length < 3 ? { ...part, folded: false } : part));
}
