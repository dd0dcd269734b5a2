import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { type RefObject, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { waitingQuery } from "@/api/approvals";
import { sessionsQuery } from "@/api/sessions";
import { serverTime } from "@/state/clock";
import { ErrorNote } from "@/ui/ErrorNote";
import { Skeleton } from "@/ui/Skeleton";
import { linesOf } from "./lines";
import { NoChats } from "./NoChats";
import { Row } from "./Row";
import { useListKeys } from "./useListKeys";

interface LinesProps {
  search: string;
  archived: boolean;
  /** The chat that is shown beside the list. */
  open: string | undefined;
  selected: ReadonlySet<string>;
  searchBox: RefObject<HTMLInputElement | null>;
  onSelect: (id: string) => void;
  onClear: () => void;
}

const HEADING_PX = 32;
const ROW_PX = 46;
/** Lines before the end at which the next page is asked for. */
const AHEAD = 20;

/** Where the list was scrolled to when it was last seen: on a phone a chat takes its place. */
let scrolledTo = 0;

/** The lines of the list. Only those in sight are in the page. */
export function Lines({ search, archived, open, selected, searchBox, onSelect, onClear }: LinesProps) {
  const { t } = useTranslation("chat");
  const box = useRef<HTMLDivElement>(null);
  const pages = useInfiniteQuery(sessionsQuery(search, archived));
  const waiting = useQuery(waitingQuery).data?.approvals;
  const lines = useMemo(() => {
    const sessions = pages.data?.pages.flatMap((page) => page.sessions) ?? [];
    return linesOf(sessions, waiting ?? [], search === "" && !archived && pages.data !== undefined, serverTime());
  }, [pages.data, waiting, search, archived]);
  const ids = useMemo(() => lines.flatMap((line) => (line.kind === "chat" ? [line.entry.id] : [])), [lines]);
  const [cursor, setCursor] = useState<string>();
  const current = cursor !== undefined && ids.includes(cursor) ? cursor : open && ids.includes(open) ? open : undefined;
  const kept = lines.findIndex((line) => line.kind === "chat" && line.entry.id === cursor);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: (index) => (lines[index]?.kind === "heading" ? HEADING_PX : ROW_PX),
    getItemKey: (index) => keyOf(lines[index]),
    overscan: 8,
    initialOffset: scrolledTo,
    // The row that has the focus stays in the page, or the focus would be lost.
    rangeExtractor: (range) => {
      const shown = defaultRangeExtractor(range);
      return kept < 0 || shown.includes(kept) ? shown : [...shown, kept].sort((a, b) => a - b);
    },
  });
  useEffect(() => {
    virtual.measure();
  }, [lines, virtual]);
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  const { hasNextPage, isFetching, isFetchNextPageError, fetchNextPage } = pages;
  useEffect(() => {
    if (hasNextPage && !isFetching && !isFetchNextPageError && last >= lines.length - AHEAD) void fetchNextPage();
  }, [last, lines.length, hasNextPage, isFetching, isFetchNextPageError, fetchNextPage]);

  const focus = useCallback(
    (id: string) => {
      setCursor(id);
      virtual.scrollToIndex(lines.findIndex((line) => line.kind === "chat" && line.entry.id === id));
      // The row may only come into the page by that.
      requestAnimationFrame(() => box.current?.querySelector<HTMLElement>(`[data-chat="${CSS.escape(id)}"]`)?.focus({ preventScroll: true }));
    },
    [virtual, lines],
  );
  useListKeys({ ids, current, search: searchBox, focus, select: onSelect, clear: onClear });

  if (pages.error && !pages.data) return <ErrorNote error={pages.error} title={t("listFailed")} onRetry={() => void pages.refetch()} className="mx-3" />;
  return (
    <div ref={box} className="min-h-0 flex-1 overflow-y-auto pb-2" onScroll={(event) => (scrolledTo = event.currentTarget.scrollTop)}>
      {!pages.data && <Skeleton rows={6} className="h-10" />}
      {pages.data && lines.length === 0 && <NoChats search={search} archived={archived} />}
      <ul aria-label={t("listLabel")} className="relative" style={{ height: virtual.getTotalSize() }}>
        {items.map((item) => {
          const line = lines[item.index];
          if (!line) return null;
          return (
            <li key={item.key} className="absolute inset-x-0 top-0" style={{ height: item.size, transform: `translateY(${item.start}px)` }}>
              {line.kind === "heading" ? (
                <h2 className="flex h-full items-end px-4 pb-1 text-meta font-medium text-faint">{t(`listGroup_${line.group}`)}</h2>
              ) : (
                <Row
                  entry={line.entry}
                  selected={selected.has(line.entry.id)}
                  selecting={selected.size > 0}
                  tabbable={line.entry.id === (current ?? ids[0])}
                  onFocus={setCursor}
                  onSelect={onSelect}
                />
              )}
            </li>
          );
        })}
      </ul>
      {isFetchNextPageError && <ErrorNote error={pages.error} title={t("listFailed")} onRetry={() => void fetchNextPage()} className="mx-3" />}
    </div>
  );
}

function keyOf(line: ReturnType<typeof linesOf>[number] | undefined): string {
  if (!line) return "";
  return line.kind === "heading" ? line.group : line.entry.id;
}
