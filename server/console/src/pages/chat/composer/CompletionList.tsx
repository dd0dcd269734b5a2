import { File, Folder } from "lucide-react";
import { useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { told } from "@/i18n/told";
import { cx } from "@/ui/class";
import type { Completion } from "./complete";
import type { Completions } from "./useCompletions";

interface CompletionListProps {
  id: string;
  list: Completions;
  /** The runner's name, for what is said of it. */
  runner: string;
  /** True where there is no room above the input. */
  below: boolean;
  onPoint: (at: number) => void;
  onChoose: (item: Completion) => void;
}

/** What the word before the cursor can become, above or below the input. */
export function CompletionList({ id, list, runner, below, onPoint, onChoose }: CompletionListProps) {
  const { t } = useTranslation("chat");
  const box = useRef<HTMLUListElement>(null);
  useEffect(() => {
    box.current?.children[list.at]?.scrollIntoView({ block: "nearest" });
  }, [list.at]);
  const isCommand = list.word.kind === "command";
  return (
    <div className={cx("fade-in absolute inset-x-0 z-30 rounded-card border border-line bg-raised shadow-float", below ? "top-full mt-1" : "bottom-full mb-1")}>
      <ul ref={box} id={id} role="listbox" aria-label={isCommand ? t("inputCommands") : t("inputFiles")} className="max-h-72 overflow-y-auto p-1">
        {list.items.map((item, place) => (
          <li
            key={item.name}
            id={`${id}-${place}`}
            role="option"
            aria-selected={place === list.at}
            onPointerMove={() => onPoint(place)}
            // The focus stays in the text.
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => onChoose(item)}
            className={cx("touchable flex min-h-8 cursor-pointer flex-wrap items-center gap-x-2 rounded-control px-2 py-1 text-dense md:flex-nowrap", place === list.at && "bg-hover")}
          >
            {!isCommand && <Sign folder={item.folder} />}
            <span className={cx("truncate", isCommand ? "max-w-full shrink-0 font-medium" : "min-w-0 font-mono")}>{item.name}</span>
            {item.arguments && <span className="min-w-0 truncate text-faint">{told(item.arguments)}</span>}
            {item.summary && <span className="min-w-0 flex-1 text-muted max-md:basis-full max-md:text-meta md:truncate md:text-right">{told(item.summary)}</span>}
          </li>
        ))}
      </ul>
      <Nothing list={list} runner={runner} />
    </div>
  );
}

function Sign({ folder }: { folder: boolean }) {
  const Icon = folder ? Folder : File;
  return <Icon aria-hidden className="size-4 shrink-0 text-faint" />;
}

function Nothing({ list, runner }: { list: Completions; runner: string }) {
  const { t } = useTranslation("chat");
  if (list.loading) return <p className="late px-3 pb-2 text-dense text-muted">{t("inputFilesLoading", { runner })}</p>;
  if (!list.none) return null;
  const words = list.none === "away" ? t("inputFilesAway", { runner }) : list.none === "none" ? t("inputFilesNone") : t("inputFilesFailed", { runner, reason: list.none.failed });
  return (
    <p role="status" className="px-3 pb-2 text-dense wrap-anywhere text-muted">
      {words}
    </p>
  );
}
