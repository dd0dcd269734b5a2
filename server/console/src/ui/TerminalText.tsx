import { memo, useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { bytes } from "@/format/number";
import "@/styles/code.css";
import type { OutputLine } from "@/transcript/ansi";
import { cx } from "./class";

/** The most letters of one line that are shown. */
const MOST_COLUMNS = 4000;

interface TerminalTextProps {
  lines: readonly OutputLine[];
  label: string;
  /** True while the program writes: the last line is kept in sight, unless the reader went up. */
  live?: boolean;
  /** The command, above its output. */
  command?: string | undefined;
  className?: string;
}

/** The output of a program, in its own colours; dark in both themes. */
export const TerminalText = memo(function TerminalText({ lines, label, live = false, command, className }: TerminalTextProps) {
  const { t } = useTranslation("transcript");
  const box = useRef<HTMLPreElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    const at = box.current;
    if (at && live && follows.current) at.scrollTop = at.scrollHeight;
  }, [lines, live]);
  return (
    <pre
      ref={box}
      tabIndex={0}
      aria-label={label}
      onScroll={(event) => {
        const at = event.currentTarget;
        follows.current = at.scrollHeight - at.scrollTop - at.clientHeight < 24;
      }}
      className={cx("max-h-120 overflow-y-auto overscroll-contain bg-term px-3 py-2 text-code wrap-anywhere whitespace-pre-wrap text-term-ink", className)}
    >
      {command !== undefined && (
        <span className="block">
          <span aria-hidden className="text-term-faint select-none">
            ${" "}
          </span>
          {command}
          {"\n"}
        </span>
      )}
      {lines.map((line, index) =>
        line.kind === "gap" ? (
          <span key={index} className="block text-term-faint italic">
            {t("outputGap", { size: bytes(line.bytes) })}
            {"\n"}
          </span>
        ) : (
          <TextLine key={index} line={line} />
        ),
      )}
    </pre>
  );
});

const TextLine = memo(function TextLine({ line }: { line: Extract<OutputLine, { kind: "text" }> }) {
  let left = MOST_COLUMNS;
  return (
    <span className="block min-h-5">
      {line.spans.map((span, index) => {
        const text = span.text.slice(0, Math.max(0, left));
        left -= span.text.length;
        return (
          <span key={index} className={span.classes}>
            {text}
          </span>
        );
      })}
      {left < 0 && "…"}
      {"\n"}
    </span>
  );
});
