import { Archive, SquarePen } from "lucide-react";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button, IconButton } from "@/ui/Button";
import { useIsNarrow } from "../useIsNarrow";
import { BulkBar } from "./BulkBar";
import { Lines } from "./Lines";
import { SearchBox } from "./SearchBox";

/** The person's chats: search, the chats by need and day, and what can be done with several at once. */
export function SessionList() {
  const { t } = useTranslation(["chat", "frame"]);
  const navigate = useNavigate();
  const narrow = useIsNarrow();
  const search = useRef<HTMLInputElement>(null);
  const { search: wanted = "", archived = false } = useSearch({ from: "/frame/chat" });
  const open = useParams({ strict: false }).session;
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const clear = () => setSelected(new Set());
  const toggle = (id: string) => {
    setSelected((before) => {
      const after = new Set(before);
      if (!after.delete(id)) after.add(id);
      return after;
    });
  };
  const filter = () => {
    clear();
    void navigate({ to: ".", search: (before) => ({ ...before, archived: archived ? undefined : true }), replace: true });
  };
  const begin = () => void navigate({ to: "/chat", search: (before) => ({ ...before, new: narrow || undefined }) });
  const deleted = (ids: readonly string[]) => {
    clear();
    if (open && ids.includes(open)) void navigate({ to: "/chat", search: true });
  };
  return (
    <section aria-label={t("listLabel")} className="flex min-h-0 min-w-0 flex-1 flex-col">
      <header className="flex items-center gap-1 px-3 pt-3 pb-2">
        <h1 className="min-w-0 flex-1 truncate px-1 font-semibold">{archived ? t("listArchivedTitle") : t("frame:chat")}</h1>
        <IconButton icon={Archive} label={archived ? t("listHideArchived") : t("listShowArchived")} aria-pressed={archived} onClick={filter} className={archived ? "bg-selected text-ink" : ""} />
        {narrow ? (
          <Button look="primary" icon={SquarePen} onClick={begin}>
            {t("frame:newChat")}
          </Button>
        ) : (
          <IconButton icon={SquarePen} label={t("frame:newChat")} onClick={begin} />
        )}
      </header>
      <SearchBox ref={search} />
      <Lines search={wanted} archived={archived} open={open} selected={selected} searchBox={search} onSelect={toggle} onClear={clear} />
      {selected.size > 0 && <BulkBar selected={selected} archived={archived} onClear={clear} onDeleted={deleted} />}
    </section>
  );
}
