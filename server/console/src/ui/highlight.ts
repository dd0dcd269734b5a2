/** The colours of code, computed by a chunk of its own that is loaded when there is code to colour. */
import { useEffect, useState } from "react";

/** A piece of a line of code in one colour. */
export interface CodeSpan {
  readonly text: string;
  /** A class of `styles/code.css`; empty for plain code. */
  readonly look: string;
}

/** The longest code that is coloured, in characters. */
const MOST = 60_000;

/** Code that is coloured already, the last ones. */
const known = new Map<string, readonly (readonly CodeSpan[])[]>();
const MOST_KNOWN = 64;

/**
 * The lines of a code with their colours; undefined until they are computed, or where none are.
 *
 * `language` is a name such as `rust`, or a file's ending. Pass `ready` once the code does not change any more.
 */
export function useHighlighted(text: string, language: string, ready: boolean): readonly (readonly CodeSpan[])[] | undefined {
  const key = `${language}\n${text}`;
  const wanted = ready && language !== "" && text.length <= MOST;
  const [made, setMade] = useState<{ key: string; lines: readonly (readonly CodeSpan[])[] } | undefined>();
  useEffect(() => {
    if (!wanted || known.has(key)) return;
    let gone = false;
    const stop = whenIdle(() => {
      void import("./highlighter").then(({ highlight }) => {
        if (gone) return;
        const lines = highlight(text, language);
        if (!lines) return;
        known.set(key, lines);
        if (known.size > MOST_KNOWN) known.delete(known.keys().next().value ?? "");
        setMade({ key, lines });
      });
    });
    return () => {
      gone = true;
      stop();
    };
  }, [key, wanted, text, language]);
  if (!wanted) return undefined;
  return known.get(key) ?? (made?.key === key ? made.lines : undefined);
}

/** The language of a file by its name's ending; empty if it has none. */
export function languageOf(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (/^(Makefile|Dockerfile)$/i.test(name)) return name.toLowerCase();
  const dot = name.lastIndexOf(".");
  return dot > 0 ? name.slice(dot + 1).toLowerCase() : "";
}

function whenIdle(run: () => void): () => void {
  // Safari has no idle callbacks.
  if (typeof requestIdleCallback !== "function") {
    const timer = setTimeout(run, 50);
    return () => clearTimeout(timer);
  }
  const handle = requestIdleCallback(run, { timeout: 500 });
  return () => cancelIdleCallback(handle);
}
