import { useTranslation } from "react-i18next";
import { Address } from "@/markdown/Inline";
import { Markdown } from "@/markdown/Markdown";
import type { CallItem } from "@/transcript/model";
import { Code } from "@/ui/Code";
import { languageOf } from "@/ui/highlight";
import { Images } from "../Images";
import { FileChange } from "./FileChange";
import { Matches } from "./Matches";
import { ProgramOutput } from "./ProgramOutput";
import { ResultText } from "./ResultText";

/** The inside of a call's card, by its kind. */
export function CallBody({ item }: { item: CallItem }) {
  const images = item.images.length > 0 && (
    <div className="px-3 pb-3">
      <Images images={item.images} />
    </div>
  );
  return (
    <>
      <Kind item={item} />
      {images}
    </>
  );
}

function Kind({ item }: { item: CallItem }) {
  const { t } = useTranslation("transcript");
  const { request } = item;
  const failed = item.end?.failed === true;
  switch (request.kind) {
    case "shell":
    case "task":
      return <ProgramOutput item={item} />;
    case "edit":
    case "write":
      return (
        <>
          <FileChange call={item} />
          {failed && <ResultText item={item} />}
        </>
      );
    case "read": {
      const file = failed ? undefined : numberedFile(item.result);
      if (!file) return <ResultText item={item} />;
      return (
        <div className="border-t border-line p-2">
          <Code text={file.text} language={languageOf(request.path)} firstLine={file.first} title={request.path} />
          {file.notes && <p className="px-1 pt-1 text-meta text-muted">{file.notes}</p>}
        </div>
      );
    }
    case "grep":
      return failed ? <ResultText item={item} /> : <Matches item={item} />;
    case "fetch":
      return (
        <>
          <p className="border-t border-line px-3 py-2 text-dense">
            <Address href={request.url}>{request.url}</Address>
          </p>
          <ResultText item={item} />
        </>
      );
    case "plan":
      return (
        <div className="border-t border-line px-4 py-3">
          <Markdown text={request.plan} />
        </div>
      );
    case "ask":
      return (
        <>
          <p className="border-t border-line px-3 py-2 wrap-anywhere whitespace-pre-wrap">{request.question}</p>
          <ResultText item={item} />
        </>
      );
    case "agent":
      return (
        <>
          <p className="border-t border-line px-3 py-2 text-dense text-muted wrap-anywhere whitespace-pre-wrap">{request.prompt}</p>
          <ResultText item={item} />
        </>
      );
    case "other":
      return (
        <>
          {request.about.includes("\n") && <ResultText item={item} text={request.about} label={t("callArguments")} />}
          <ResultText item={item} />
        </>
      );
    default:
      return <ResultText item={item} />;
  }
}

/** The lines of a file that a result tells, each behind its number, and the notes below them. */
function numberedFile(result: string): { text: string; first: number; notes: string } | undefined {
  const [lines, notes]: [string[], string[]] = [[], []];
  let first = 0;
  for (const line of result.split("\n")) {
    const numbered = /^ *(\d{1,9})\t(.*)$/s.exec(line);
    if (numbered) {
      if (lines.length === 0) first = Number(numbered[1]);
      lines.push(numbered[2] ?? "");
    } else if (line !== "") notes.push(line);
  }
  return lines.length > 0 ? { text: lines.join("\n"), first, notes: notes.join("\n") } : undefined;
}
