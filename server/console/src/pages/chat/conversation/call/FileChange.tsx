import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { countDiff, type DiffLine, lineDiff } from "@/format/line-diff";
import type { CallItem } from "@/transcript/model";
import { changedNothing, editedLine, madeFile, replacedFile } from "@/transcript/results";
import { Code } from "@/ui/Code";
import { Diff } from "@/ui/Diff";
import { languageOf } from "@/ui/highlight";

/** The longest texts that are compared for a count alone, in characters. */
const MOST_COUNTED = 40_000;

/** The lines that a call changes; undefined where they are not known, as for a write over a file. */
function linesOf(call: CallItem): DiffLine[] | undefined {
  const { request } = call;
  if (request.kind === "edit") return lineDiff(request.old, request.new, editedLine(call));
  if (changedNothing(call)) return [];
  return request.kind === "write" && madeFile(call) ? lineDiff("", request.content, 1) : undefined;
}

/** The change of a file by an edit or a write. */
export function FileChange({ call }: { call: CallItem }) {
  const { t } = useTranslation("transcript");
  const lines = useMemo(() => linesOf(call), [call]);
  const { request } = call;
  if (request.kind !== "edit" && request.kind !== "write") return null;
  return (
    <>
      {request.kind === "edit" && request.every && <p className="border-t border-line px-3 py-1 text-meta text-muted">{t("everyOccurrence")}</p>}
      <div className="max-h-120 overflow-y-auto overscroll-contain border-t border-line">
        {!lines && request.kind === "write" ? (
          <div className="p-2">
            <Code text={request.content} language={languageOf(request.path)} firstLine={1} title={t("wholeContent")} />
          </div>
        ) : lines && lines.length > 0 ? (
          <Diff lines={lines} label={t("changeOf", { path: request.path })} />
        ) : (
          <p className="px-3 py-2 text-dense text-muted">{t("noChange")}</p>
        )}
      </div>
    </>
  );
}

/** The numbers of added and removed lines, beside the name of the file; they are not known of a file that was replaced. */
export function DiffCount({ call }: { call: CallItem }) {
  const { t } = useTranslation("transcript");
  const count = useMemo(() => {
    const { request } = call;
    const size = request.kind === "edit" ? request.old.length + request.new.length : request.kind === "write" ? request.content.length : 0;
    const lines = size > 0 && size <= MOST_COUNTED ? linesOf(call) : undefined;
    return lines && lines.length > 0 ? countDiff(lines) : undefined;
  }, [call]);
  if (replacedFile(call)) return <span className="shrink-0 text-meta text-muted">{t("replaced")}</span>;
  if (!count) return null;
  return (
    <span className="shrink-0 text-meta tabular-nums">
      <span className="sr-only">{t("diffCount", count)}</span>
      <span aria-hidden>
        {count.added > 0 && <span className="text-diff-add-mark">+{count.added}</span>} {count.removed > 0 && <span className="text-diff-del-mark">−{count.removed}</span>}
      </span>
    </span>
  );
}
