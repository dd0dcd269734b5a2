import { defaultRangeExtractor, type Range, useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown } from "lucide-react";
import { type KeyboardEvent, type Ref, useCallback, useEffect, useImperativeHandle, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { cx } from "@/ui/class";
import { likelyHeight, type Row } from "./rows";
import { RowView } from "./RowView";
import { useFollowing } from "./useFollowing";

/** The distance from the end within which the reader stands at it, in pixels. */
const AT_END = 8;

/** The room behind the last row, in pixels: that of the words on what works. */
const END_ROOM = 40;

/** The time for which a fold that the reader moved keeps the page where it is, in milliseconds. */
const HOLD_MS = 400;

/** The handle of a list. */
export interface ItemListHandle {
  /** Keeps the reader's place while something opens or closes, even at the end. */
  hold: () => void;
  /** Scrolls to a row, and gives the focus to an element in it. */
  reveal: (key: string, element: string) => void;
  toEnd: () => void;
}

interface ItemListProps {
  rows: readonly Row[];
  /** The rows that are painted wherever the reader is: something may be written in them. */
  kept: readonly string[];
  /** Stands behind the last row. */
  end: React.ReactNode;
  ref: Ref<ItemListHandle>;
}

/** The rows of a conversation, of which only those in sight are painted. It opens at its end, and follows it while the reader is there. */
export function ItemList({ rows, kept, end, ref }: ItemListProps) {
  const { t } = useTranslation("transcript");
  const box = useRef<HTMLDivElement>(null);
  const sizer = useRef<HTMLDivElement>(null);
  const [held, setHeld] = useState(false);
  const { follows, follow } = useFollowing(box, sizer, held, AT_END);
  /** The last row that the reader saw at the end. */
  const seen = useRef<string | undefined>(undefined);
  const keptIndexes = useMemo(() => {
    if (kept.length === 0) return [];
    const wanted = new Set(kept);
    return rows.flatMap((row, index) => (wanted.has(row.key) ? [index] : []));
  }, [rows, kept]);
  const [beginning] = useState(() => rows.reduce((sum, row) => sum + likelyHeight(row), 0));
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    getItemKey: (index) => rows[index]?.key ?? index,
    estimateSize: (index) => likelyHeight(rows[index]),
    overscan: 6,
    paddingStart: 16,
    paddingEnd: END_ROOM,
    initialOffset: beginning,
    anchorTo: follows && !held ? "end" : "start",
    followOnAppend: follows && !held,
    scrollEndThreshold: AT_END,
    rangeExtractor: useCallback(
      (range: Range) => {
        const seen = defaultRangeExtractor(range);
        return keptIndexes.length === 0 ? seen : [...new Set([...seen, ...keptIndexes])].sort((one, other) => one - other);
      },
      [keptIndexes],
    ),
  });
  useLayoutEffect(() => list.scrollToEnd(), [list]);
  useEffect(() => {
    if (!held) return;
    const timer = setTimeout(() => setHeld(false), HOLD_MS);
    return () => clearTimeout(timer);
  }, [held]);

  const lastKey = rows.at(-1)?.key;
  useEffect(() => {
    if (follows) seen.current = lastKey;
  }, [follows, lastKey]);

  const toEnd = () => {
    setHeld(false);
    follow();
    list.scrollToEnd();
  };
  useImperativeHandle(ref, () => ({
    hold: () => setHeld(true),
    reveal: (key, element) => {
      const index = rows.findIndex((row) => row.key === key);
      if (index >= 0) list.scrollToIndex(index, { align: "center" });
      document.getElementById(element)?.focus({ preventScroll: index >= 0 });
    },
    toEnd,
  }));

  const hear = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Home") list.scrollToOffset(0);
    else if (event.key === "End") toEnd();
    else return;
    event.preventDefault();
  };
  const fresh = follows ? 0 : rows.length - 1 - rows.findLastIndex((row) => row.key === seen.current);
  return (
    <div className="relative min-h-0 flex-1">
      <div ref={box} role="region" aria-label={t("conversation")} tabIndex={0} onKeyDown={hear} className="h-full overflow-y-auto overscroll-contain [overflow-anchor:none]">
        <div ref={sizer} className="relative mx-auto w-full max-w-4xl" style={{ height: list.getTotalSize() }}>
          {list.getVirtualItems().map((item) => {
            const row = rows[item.index];
            if (!row) return null;
            return (
              <div key={item.key} ref={list.measureElement} data-index={item.index} className={cx("absolute top-0 left-0 w-full px-4 md:px-6", spaceOf(row))} style={{ transform: `translateY(${item.start}px)` }}>
                <RowView row={row} />
              </div>
            );
          })}
          <div className="absolute bottom-0 left-0 h-10 w-full px-4 pt-1 md:px-6">{end}</div>
        </div>
      </div>
      {!follows && (
        <button
          type="button"
          onClick={toEnd}
          className="touchable fade-in absolute bottom-3 left-1/2 flex h-8 -translate-x-1/2 items-center gap-1.5 rounded-full border border-line bg-raised px-3 text-dense font-medium shadow-float hover:bg-hover"
        >
          {fresh > 0 ? t("newRows", { count: fresh }) : t("toEnd")}
          <ArrowDown aria-hidden className="size-4" />
        </button>
      )}
    </div>
  );
}

/** The room around a row: calls stand close together, what people and models say apart. */
function spaceOf(row: Row): string {
  if (row.kind !== "item") return "py-0.5";
  switch (row.item.kind) {
    case "message":
      return "py-3";
    case "answer":
      return "py-2";
    case "call":
      return "py-1";
    default:
      return "py-1";
  }
}
