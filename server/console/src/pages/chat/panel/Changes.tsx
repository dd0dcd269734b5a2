import { FileDiff } from "lucide-react";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { countDiff, type DiffLine, lineDiff } from "@/format/line-diff";
import type { Change } from "@/transcript/changes";
import type { FileChanges } from "@/transcript/facts";
import { Badge } from "@/ui/Badge";
import { Diff } from "@/ui/Diff";
import { Empty } from "@/ui/Empty";

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
  const diffs = useMemo(() => file.changes.map((change) => ({ change, lines: linesOf(change) })), [file.changes]);
  const count = diffs.reduce(
    (sum, { lines }) => {
      const { added, removed } = countDiff(lines);
      return { added: sum.added + added, removed: sum.removed + removed };
    },
    { added: 0, removed: 0 },
  );
  return (
    <details className="border-b border-line">
      <summary className="touchable flex items-center gap-2 px-4 py-2 text-code">
        <span className="min-w-0 flex-1 truncate font-mono" title={file.path}>
          {file.path}
        </span>
        <span className="text-meta text-diff-add-mark tabular-nums">+{count.added}</span>
        <span className="text-meta text-diff-del-mark tabular-nums">−{count.removed}</span>
      </summary>
      {diffs.map(({ change, lines }) => (
        <div key={change.item} className="border-t border-line">
          {change.rewound && (
            <p className="px-4 py-1">
              <Badge>{t("rewound")}</Badge>
            </p>
          )}
          <Diff lines={lines} label={file.path} />
        </div>
      ))}
    </details>
  );
}

function linesOf(change: Change): DiffLine[] {
  return change.deed === "edited" ? lineDiff(change.old, change.new, change.line) : lineDiff("", change.content, 1);
}
