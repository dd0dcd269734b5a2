import { Archive, ArchiveRestore, Trash2, X } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { changeSessions, deleteSessions } from "@/api/sessions";
import { IconButton } from "@/ui/Button";
import { Confirm } from "@/ui/Confirm";
import { say, sayFailed } from "@/ui/Toast";

interface BulkBarProps {
  selected: ReadonlySet<string>;
  /** True if the list shows the archived chats. */
  archived: boolean;
  onClear: () => void;
  /** Called after chats were deleted. */
  onDeleted: (ids: readonly string[]) => void;
}

/** What can be done with all selected chats at once. */
export function BulkBar({ selected, archived, onClear, onDeleted }: BulkBarProps) {
  const { t } = useTranslation(["chat", "common"]);
  const [busy, setBusy] = useState(false);
  const [asks, setAsks] = useState(false);
  const ids = [...selected];
  const archive = async () => {
    setBusy(true);
    try {
      await changeSessions(ids, { archived: !archived });
      say(archived ? t("listUnarchivedMany", { count: ids.length }) : t("listArchivedMany", { count: ids.length }));
      onClear();
    } catch (error) {
      sayFailed(archived ? t("listUnarchiveFailed") : t("listArchiveFailed"), error);
    } finally {
      setBusy(false);
    }
  };
  const remove = async () => {
    await deleteSessions(ids);
    onDeleted(ids);
  };
  return (
    <div role="toolbar" aria-label={t("listSelected", { count: ids.length })} className="flex items-center gap-1 border-t border-line bg-surface px-3 py-2">
      <span role="status" className="min-w-0 flex-1 truncate text-dense font-medium">
        {t("listSelected", { count: ids.length })}
      </span>
      <IconButton size="sm" icon={archived ? ArchiveRestore : Archive} label={archived ? t("listUnarchive") : t("listArchive")} busy={busy} onClick={archive} />
      <IconButton size="sm" icon={Trash2} label={t("common:delete")} onClick={() => setAsks(true)} />
      <IconButton size="sm" icon={X} label={t("listClear")} onClick={onClear} />
      <Confirm open={asks} onClose={() => setAsks(false)} title={t("listDeleteMany", { count: ids.length })} verb={t("common:delete")} danger onConfirm={remove}>
        <p>{t("listDeleteLost", { count: ids.length })}</p>
      </Confirm>
    </div>
  );
}
