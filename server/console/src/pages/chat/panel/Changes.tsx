import { FileDiff } from "lucide-react";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { countDiff, type DiffLine, lineDiff } from "@/format/line-diff";
import type { Change } from "@/transcript/changes";
import type { FileChanges } from "@/transcript/facts";
import { Badge } from "@/ui/Badge";
import { Code } from "@/ui/Code";
import { Diff } from "@/ui/Diff";
import { Empty } from "@/ui/Empty";
import { languageOf } from "@/ui/highlight";

/** The files that calls of this chat wrote or edited, each with its changes in their order. */
export function Changes({ files, dropped }: { files: readonly FileChanges[]; dropped: number }) {
  const { t } = useTranslation("files");
  if (files.length === 0) {
    return (
      <Empty icon={FileDiff} title={t("noChanges")}>
        {t("noChangesHint")}
      </Empty>
    );
  }
  return (
    <div>
      {dropped > 0 && <p className="px-4 py-2 text-meta text-muted">{t("changesDropped", { count: dropped })}</p>}
      {files.map((file) => (
        <File key={file.path} file={file} />
      ))}
      <p className="px-4 py-3 text-meta text-muted">{t("changesByCommands")}</p>
    </div>
  );
}

function File({ file }: { file: FileChanges }) {
  const { t } = useTranslation("files");
  const diffs = useMemo(() => file.changes.map((change) => ({ change, lines: linesOf(change), content: replacement(change) })), [file.changes]);
  const replaced = diffs.some(({ content }) => content !== undefined);
  const count = countDiff(diffs.flatMap(({ lines }) => lines));
  return (
    <details className="border-b border-line">
      <summary className="touchable flex items-center gap-2 px-4 py-2 text-code">
        <span className="min-w-0 flex-1 truncate font-mono" title={file.path}>
          {file.path}
        </span>
        {replaced ? (
          <span className="text-meta text-muted">{t("replaced")}</span>
        ) : (
          <>
            <span className="text-meta text-diff-add-mark tabular-nums">+{count.added}</span>
            <span className="text-meta text-diff-del-mark tabular-nums">−{count.removed}</span>
          </>
        )}
      </summary>
      {diffs.map(({ change, lines, content }) => (
        <div key={change.item} className="border-t border-line">
          {change.rewound && (
            <p className="px-4 py-1">
              <Badge>{t("rewound")}</Badge>
            </p>
          )}
          {content !== undefined ? (
            <div className="p-2">
              <Code text={content} language={languageOf(file.path)} firstLine={1} title={t("replacedBy")} />
            </div>
          ) : (
            <Diff lines={lines} label={file.path} />
          )}
        </div>
      ))}
    </details>
  );
}

/** The new content of a file that was there; undefined for other changes. What went is not known, so no lines are counted. */
function replacement(change: Change): string | undefined {
  return change.deed === "written" && !change.made ? change.content : undefined;
}

function linesOf(change: Change): DiffLine[] {
  if (change.deed === "edited") return lineDiff(change.old, change.new, change.line);
  return change.made ? lineDiff("", change.content, 1) : [];
}
