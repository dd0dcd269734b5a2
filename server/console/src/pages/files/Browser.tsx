import { useQuery } from "@tanstack/react-query";
import { Eye, EyeOff, FolderOpen, FolderPlus, RefreshCw, Upload } from "lucide-react";
import { type DragEvent, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { folderQuery } from "@/api/files";
import type { ListedEntry } from "@/api/schema";
import { Button, IconButton } from "@/ui/Button";
import { cx } from "@/ui/class";
import { Empty } from "@/ui/Empty";
import { ErrorNote } from "@/ui/ErrorNote";
import { Skeleton } from "@/ui/Skeleton";
import { Crumbs } from "./Crumbs";
import { EntryRow } from "./EntryRow";
import { NameDialog } from "./NameDialog";
import { useUploads } from "./useUploads";
import { Viewer } from "./Viewer";

interface BrowserProps {
  /** The runner's name; the active one without it. */
  runner: string | undefined;
  /** The folder, relative to the workspace. */
  path: string;
  onGo: (path: string) => void;
}

/** One folder of a runner: its entries, and what can be done with them. Files can be dropped on it. */
export function Browser({ runner, path, onGo }: BrowserProps) {
  const { t } = useTranslation("files");
  const [pages, setPages] = useState<readonly string[]>([""]);
  const [hidden, setHidden] = useState(false);
  const [naming, setNaming] = useState(false);
  const [viewed, setViewed] = useState<ListedEntry>();
  const [isOver, setOver] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  const last = useQuery(folderQuery(runner, path, pages.at(-1) ?? ""));
  const [before, setBefore] = useState<readonly ListedEntry[]>([]);
  const [shown, setShown] = useState(path);
  if (shown !== path) {
    // Also by the browser's way back: nothing of the other folder stays.
    setShown(path);
    setPages([""]);
    setBefore([]);
    setViewed(undefined);
  }
  const all = [...before, ...(last.data?.entries ?? [])];
  const names = all.map((entry) => entry.name);
  const uploads = useUploads(runner, path, names);
  const entries = all.filter((entry) => hidden || !entry.name.startsWith(".")).toSorted(byKind);
  const more = () => {
    setBefore(all);
    setPages([...pages, last.data?.entries.at(-1)?.name ?? ""]);
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    uploads.add([...event.dataTransfer.files]);
  };
  return (
    <div
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
      className={cx("flex min-h-0 flex-1 flex-col", isOver && "outline-2 outline-accent")}
    >
      <div className="flex min-h-11 flex-wrap items-center gap-1 border-b border-line px-3">
        <Crumbs path={path} onGo={onGo} />
        <IconButton icon={hidden ? EyeOff : Eye} label={t(hidden ? "hideHidden" : "showHidden")} aria-pressed={hidden} onClick={() => setHidden(!hidden)} />
        <IconButton icon={RefreshCw} label={t("refresh")} onClick={() => void last.refetch()} />
        <IconButton icon={FolderPlus} label={t("newFolder")} onClick={() => setNaming(true)} />
        <IconButton icon={Upload} label={t("upload")} onClick={() => picker.current?.click()} />
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          aria-label={t("upload")}
          onChange={(event) => {
            uploads.add([...(event.target.files ?? [])]);
            event.target.value = "";
          }}
        />
      </div>
      {uploads.list}
      {last.isError && <ErrorNote error={last.error} title={t("listFailed")} onRetry={() => void last.refetch()} className="m-3" />}
      {last.isPending && all.length === 0 && <Skeleton rows={6} className="h-8" />}
      {last.isSuccess && entries.length === 0 && (
        <Empty icon={FolderOpen} title={t("emptyFolder")}>
          {t(all.length > 0 ? "onlyHidden" : "emptyFolderHint")}
        </Empty>
      )}
      <ul aria-label={t("entries")} className="min-h-0 divide-y divide-line overflow-y-auto">
        {entries.map((entry) => (
          <EntryRow key={entry.name} runner={runner} folder={path} entry={entry} onGo={onGo} onView={setViewed} />
        ))}
      </ul>
      {last.data?.more && (
        <div className="border-t border-line p-3 text-center">
          <Button onClick={more}>{t("showMore", { ns: "common" })}</Button>
        </div>
      )}
      {naming && <NameDialog runner={runner} folder={path} onClose={() => setNaming(false)} />}
      {viewed && <Viewer runner={runner} folder={path} entry={viewed} onClose={() => setViewed(undefined)} />}
    </div>
  );
}

/** Folders first, then by name. */
function byKind(a: ListedEntry, b: ListedEntry): number {
  return Number(b.kind === "directory") - Number(a.kind === "directory") || a.name.localeCompare(b.name);
}
