import { CornerDownRight, Download, Ellipsis, File, Folder, Pencil, Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { LARGEST, removeEntry } from "@/api/files";
import type { ListedEntry } from "@/api/schema";
import { bytes } from "@/format/number";
import { IconButton } from "@/ui/Button";
import { Confirm } from "@/ui/Confirm";
import { Menu, MenuItem, MenuLine } from "@/ui/Menu";
import { NameDialog } from "./NameDialog";
import { join } from "./path";
import { useDownload } from "./useDownload";

interface EntryRowProps {
  runner: string | undefined;
  folder: string;
  entry: ListedEntry;
  onGo: (path: string) => void;
  onView: (entry: ListedEntry) => void;
}

/** A file or folder: open it, or download, rename and remove it. */
export function EntryRow({ runner, folder, entry, onGo, onView }: EntryRowProps) {
  const { t } = useTranslation("files");
  const [open, setOpen] = useState<"rename" | "remove">();
  const path = join(folder, entry.name);
  const { read, download } = useDownload(runner, path, entry.name);
  const isFolder = entry.kind === "directory";
  const isFile = entry.kind === "file";
  const Icon = isFolder ? Folder : entry.kind === "link" ? CornerDownRight : File;
  // Bytes of such a name were replaced: it is no usable path.
  const isUsable = !entry.is_replaced;
  return (
    <li className="flex min-h-9 items-center gap-2 px-3">
      <button
        type="button"
        disabled={!isUsable || !(isFolder || isFile)}
        onClick={() => (isFolder ? onGo(path) : onView(entry))}
        className="touchable flex min-w-0 flex-1 items-center gap-2 rounded-control py-1 text-left text-dense enabled:hover:underline"
      >
        <Icon aria-label={t(`kind_${entry.kind as "file"}`)} role="img" className={isFolder ? "size-4 shrink-0 text-accent" : "size-4 shrink-0 text-faint"} />
        <span className="min-w-0 truncate">{entry.name}</span>
        {entry.leads_to && <span className="min-w-0 truncate text-muted">→ {entry.leads_to}</span>}
      </button>
      <span className="shrink-0 text-meta text-muted tabular-nums">{read !== undefined ? t("reading", { size: bytes(read) }) : isFile ? bytes(entry.bytes) : ""}</span>
      <Menu trigger={<IconButton size="sm" icon={Ellipsis} label={t("actionsFor", { name: entry.name })} />}>
        {isFile && (
          <MenuItem icon={Download} disabled={!isUsable || entry.bytes > LARGEST || read !== undefined} onSelect={() => void download()}>
            {t("download")}
          </MenuItem>
        )}
        <MenuItem icon={Pencil} disabled={!isUsable} onSelect={() => setOpen("rename")}>
          {t("rename", { ns: "common" })}
        </MenuItem>
        <MenuLine />
        <MenuItem icon={Trash2} danger disabled={!isUsable} onSelect={() => setOpen("remove")}>
          {t("remove", { ns: "common" })}
        </MenuItem>
      </Menu>
      {open === "rename" && <NameDialog runner={runner} folder={folder} entry={entry} onClose={() => setOpen(undefined)} />}
      <Confirm open={open === "remove"} onClose={() => setOpen(undefined)} danger title={t("removeTitle", { name: entry.name })} verb={t("remove", { ns: "common" })} onConfirm={() => removeEntry(runner, path)}>
        {t(isFolder ? "removeFolderHint" : "removeHint")}
      </Confirm>
    </li>
  );
}
