import { useCallback, useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { StreamName } from "@/api/schema";
import { readOutput } from "@/api/turns";
import { bytes } from "@/format/number";
import { type OutputLine, terminalLines } from "@/transcript/ansi";
import { ErrorNote } from "@/ui/ErrorNote";
import { TerminalText } from "@/ui/TerminalText";

/** The bytes of one page, and those that are shown at most. */
const PAGE_BYTES = 128 * 1024;
const MOST_BYTES = 2 * 1024 * 1024;

/** The lines that are taken apart at a time: a terminal keeps no more. */
const LINES_AT_ONCE = 150;

/** What was read of one stream. */
interface Read {
  readonly blocks: readonly (readonly OutputLine[])[];
  readonly next: number;
  readonly left: number;
  readonly skipped: number;
  /** The beginning of a line whose end is on the next page. */
  readonly begun: string;
}

const NOTHING: Read = { blocks: [], next: 0, left: 0, skipped: 0, begun: "" };

/** The stored output of an operation from its begin, page by page. */
export function StoredOutput({ operation, onClose }: { operation: string; onClose: () => void }) {
  const { t } = useTranslation("transcript");
  const [stream, setStream] = useState<StreamName>("stdout");
  return (
    <>
      <div className="flex flex-wrap items-center gap-3 border-b border-term-line px-3 py-1 text-meta text-term-faint">
        {(["stdout", "stderr"] as const).map((name) => (
          <button key={name} type="button" aria-pressed={stream === name} onClick={() => setStream(name)} className={stream === name ? "touchable text-term-ink underline" : "touchable hover:text-term-ink"}>
            {t(name)}
          </button>
        ))}
        <button type="button" onClick={onClose} className="touchable ml-auto hover:text-term-ink">
          {t("showLastLines")}
        </button>
      </div>
      <Stream key={stream} operation={operation} stream={stream} />
    </>
  );
}

function Stream({ operation, stream }: { operation: string; stream: StreamName }) {
  const { t } = useTranslation("transcript");
  const [read, setRead] = useState<Read | undefined>();
  const [error, setError] = useState<unknown>();
  const busy = useRef(false);
  const decoder = useRef(new TextDecoder());
  const more = useCallback(
    async (from: Read) => {
      if (busy.current) return;
      busy.current = true;
      setError(undefined);
      try {
        const page = await readOutput(operation, stream, from.next, PAGE_BYTES);
        const text = decoder.current.decode(Uint8Array.from(atob(page.data), (letter) => letter.charCodeAt(0)), { stream: true });
        const next = page.base + page.bytes;
        const left = page.end - next;
        const all = from.begun + text;
        const cut = left > 0 ? all.lastIndexOf("\n") + 1 || all.length : all.length;
        setRead({ blocks: [...from.blocks, ...blocksOf(all.slice(0, cut))], next, left, skipped: from.skipped + page.base - from.next, begun: all.slice(cut) });
      } catch (failure) {
        setError(failure);
      } finally {
        busy.current = false;
      }
    },
    [operation, stream],
  );
  useEffect(() => void more(NOTHING), [more]);
  return (
    <div className="max-h-[70dvh] overflow-y-auto overscroll-contain">
      {read && read.skipped > 0 && <p className="px-3 py-1 text-meta text-term-faint">{t("outputGone", { size: bytes(read.skipped) })}</p>}
      {read?.blocks.map((lines, index) => (
        <TerminalText key={index} lines={lines} label={t(stream)} className="max-h-none py-0 [contain-intrinsic-size:auto_3000px] [content-visibility:auto]" />
      ))}
      {read?.blocks.length === 0 && read.left <= 0 && <p className="px-3 py-2 text-meta text-term-faint">{t("noOutput")}</p>}
      {error !== undefined && <ErrorNote error={error} title={t("outputFailed")} onRetry={() => void more(read ?? NOTHING)} className="m-2" />}
      {read && read.left > 0 && read.next - read.skipped < MOST_BYTES && (
        <button type="button" onClick={() => void more(read)} className="touchable w-full px-3 py-1 text-left text-meta text-term-ink underline">
          {t("outputMore", { size: bytes(read.left) })}
        </button>
      )}
      {read && read.left > 0 && read.next - read.skipped >= MOST_BYTES && <p className="px-3 py-1 text-meta text-term-faint">{t("outputRest", { size: bytes(read.left), operation })}</p>}
    </div>
  );
}

/** The lines of a page, a few at a time. */
function blocksOf(text: string): (readonly OutputLine[])[] {
  const lines = text.replace(/\n$/, "").split("\n");
  const blocks: (readonly OutputLine[])[] = [];
  for (let at = 0; at < lines.length && text !== ""; at += LINES_AT_ONCE) {
    blocks.push(terminalLines(lines.slice(at, at + LINES_AT_ONCE).join("\n")));
  }
  return blocks;
}
