import { Check, Ellipsis } from "lucide-react";
import { Link } from "@tanstack/react-router";
import { memo, type MouseEvent } from "react";
import { useTranslation } from "react-i18next";
import { Badge } from "@/ui/Badge";
import { IconButton } from "@/ui/Button";
import { cx } from "@/ui/class";
import { Ago } from "@/ui/Time";
import type { Entry } from "./lines";
import { SessionMenu } from "./SessionMenu";

interface RowProps {
  entry: Entry;
  selected: boolean;
  /** True while at least one chat is selected: then a click selects. */
  selecting: boolean;
  /** True for the one row that Tab reaches; j and k lead to the others. */
  tabbable: boolean;
  onFocus: (id: string) => void;
  onSelect: (id: string) => void;
}

/** A chat in the list. It is drawn anew only if something of it changes. */
export const Row = memo(function Row({ entry, selected, selecting, tabbable, onFocus, onSelect }: RowProps) {
  const { t } = useTranslation("chat");
  const title = entry.title || t("listUntitled");
  const click = (event: MouseEvent) => {
    if (!selecting && !event.shiftKey) return;
    event.preventDefault();
    onSelect(entry.id);
  };
  return (
    <div className={cx("group relative mx-2 flex h-full rounded-control hover:bg-hover", selected && "bg-selected!")}>
      <Link
        to="/chat/$session"
        params={{ session: entry.id }}
        search={(before) => ({ ...before, new: undefined })}
        data-chat={entry.id}
        tabIndex={tabbable ? 0 : -1}
        onClick={click}
        onFocus={() => onFocus(entry.id)}
        className="flex min-w-0 flex-1 items-center gap-2 rounded-control py-1 pr-2 pl-2 group-focus-within:pr-10 group-hover:pr-10 pointer-coarse:pr-12"
        activeProps={{ className: "bg-selected" }}
      >
        {selected && <Check aria-hidden className="size-4 shrink-0 text-accent" />}
        <span className="min-w-0 flex-1">
          <span dir="auto" className={cx("block truncate text-left text-dense", entry.waiting > 0 && "font-medium")}>
            {title}
          </span>
          <span className="flex items-center gap-1 truncate text-meta text-faint">
            {entry.working && entry.waiting === 0 ? <span className="text-accent">{t("listWorking")}</span> : <Ago at={entry.at} />}
            {entry.session?.runner && <span className="truncate">· {entry.session.runner.name}</span>}
          </span>
        </span>
        {entry.waiting > 0 && <Badge tone="accent">{t("listNeedsYou")}</Badge>}
      </Link>
      {entry.working && entry.waiting === 0 && <span aria-hidden className="works absolute inset-x-2 bottom-0" />}
      {entry.session && !selecting && (
        <div className="absolute top-1/2 right-1 -translate-y-1/2 opacity-0 group-focus-within:opacity-100 group-hover:opacity-100 has-data-[state=open]:opacity-100 pointer-coarse:opacity-100">
          <SessionMenu session={entry.session} trigger={<IconButton size="sm" icon={Ellipsis} label={t("listMenu", { title })} tabIndex={tabbable ? 0 : -1} />} />
        </div>
      )}
    </div>
  );
});
