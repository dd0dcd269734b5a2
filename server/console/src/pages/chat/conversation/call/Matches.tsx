import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { CallItem } from "@/transcript/model";
import { ResultText } from "./ResultText";

/** The matches that are shown; a search finds more seldom. */
const MOST_MATCHES = 500;

interface FileMatches {
  readonly path: string;
  readonly lines: readonly { readonly number: string; readonly text: string }[];
}

/** The lines that a search found, by their files. */
export function Matches({ item }: { item: CallItem }) {
  const { t } = useTranslation("transcript");
  const found = useMemo(() => matchesOf(item.result), [item.result]);
  if (found.files.length === 0) return <ResultText item={item} />;
  return (
    <div role="region" aria-label={t("matches")} tabIndex={0} className="max-h-120 overflow-y-auto overscroll-contain border-t border-line py-1 font-mono text-code">
      {found.files.map((file) => (
        <section key={file.path} className="px-3 py-1">
          <h4 className="font-medium wrap-anywhere">{file.path}</h4>
          {file.lines.map((line, index) => (
            <p key={index} className="flex gap-3">
              <span className="w-10 shrink-0 text-right text-faint">{line.number}</span>
              <span className="min-w-0 wrap-anywhere whitespace-pre-wrap text-muted">{line.text.length > 400 ? `${line.text.slice(0, 400)}…` : line.text}</span>
            </p>
          ))}
        </section>
      ))}
      {found.notes && <p className="px-3 py-1 font-sans text-meta text-muted">{found.notes}</p>}
    </div>
  );
}

function matchesOf(result: string): { files: FileMatches[]; notes: string } {
  const files = new Map<string, { number: string; text: string }[]>();
  const notes: string[] = [];
  for (const line of result.split("\n", MOST_MATCHES)) {
    const match = /^(.+?):(\d{1,9}):(.*)$/s.exec(line);
    if (match) {
      const [, path = "", number = "", text = ""] = match;
      const lines = files.get(path) ?? [];
      lines.push({ number, text });
      files.set(path, lines);
    } else if (line !== "") notes.push(line);
  }
  return { files: [...files].map(([path, lines]) => ({ path, lines })), notes: notes.join("\n") };
}
