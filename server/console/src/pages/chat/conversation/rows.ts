/** The rows of a conversation: its items, where calls that only look, and what was gone back from, stand together. */
import type { CallItem, Item } from "@/transcript/model";

/** One row. It keeps its identity while its items keep theirs. */
export type Row =
  | { readonly kind: "item"; readonly key: string; readonly item: Item }
  /** Consecutive calls that only looked, and ended well. */
  | { readonly kind: "looks"; readonly key: string; readonly calls: readonly CallItem[] }
  /** Items that are no part of the conversation any more. */
  | { readonly kind: "rewound"; readonly key: string; readonly items: readonly Item[] };

/** The fewest calls that are told together. */
const FEWEST_TOGETHER = 2;

/** A row, and the number of the items up to its end. */
interface Made {
  readonly row: Row;
  readonly end: number;
}

/** Makes rows of items, again and again as they change. Only the rows from the first changed item on are made again. */
export class RowMaker {
  #items: readonly Item[] = [];
  #made: readonly Made[] = [];
  #rows: readonly Row[] = [];

  rows(items: readonly Item[]): readonly Row[] {
    if (items === this.#items) return this.#rows;
    let same = 0;
    while (same < items.length && items[same] === this.#items[same]) same++;
    // A row ends where the item behind it says so, which must be the same one too.
    let kept = 0;
    while (kept < this.#made.length && (this.#made[kept]?.end ?? 0) < same) kept++;
    const before = new Map(this.#made.slice(kept).map(({ row }) => [row.key, row]));
    const made = this.#made.slice(0, kept);
    for (const { row, end } of grouped(items, made.at(-1)?.end ?? 0)) {
      const known = before.get(row.key);
      made.push({ row: known && isSame(known, row) ? known : row, end });
    }
    this.#items = items;
    this.#made = made;
    this.#rows = made.map(({ row }) => row);
    return this.#rows;
  }
}

function grouped(items: readonly Item[], from: number): Made[] {
  const made: Made[] = [];
  for (let at = from; at < items.length; ) {
    const item = items[at] as Item;
    const end = item.rewound ? endOf(items, at, (one) => one.rewound) : isPlainLook(item) ? endOf(items, at, isPlainLook) : at + 1;
    const add = (row: Row) => made.push({ row, end });
    if (item.rewound) add({ kind: "rewound", key: `${item.id}:rewound`, items: items.slice(at, end) });
    else if (end - at >= FEWEST_TOGETHER) add({ kind: "looks", key: `${item.id}:looks`, calls: items.slice(at, end) as CallItem[] });
    else if (isShown(item)) add({ kind: "item", key: item.id, item });
    at = end;
  }
  return made;
}

function endOf(items: readonly Item[], from: number, is: (item: Item) => boolean): number {
  let end = from + 1;
  while (end < items.length && is(items[end] as Item)) end++;
  return end;
}

/** True for a call that read or searched files, and about which there is nothing more to say. */
function isPlainLook(item: Item): boolean {
  if (item.kind !== "call" || item.rewound || item.approval || item.images.length > 0) return false;
  const looks = ["read", "list", "glob", "grep"].includes(item.request.kind);
  return looks && item.end !== null && !item.end.failed && !item.end.finding && item.end.outcome === "completed";
}

/** False for an item that something else tells better: an item of its own, or the words on what works. */
function isShown(item: Item): boolean {
  if (item.kind === "note") return item.note.type !== "notice";
  return !(item.kind === "call" && item.request.kind === "todo" && item.end !== null && !item.end.failed);
}

function isSame(one: Row, other: Row): boolean {
  if (one.kind === "item") return other.kind === "item" && one.item === other.item;
  if (one.kind === "looks") return other.kind === "looks" && areSame(one.calls, other.calls);
  return other.kind === "rewound" && areSame(one.items, other.items);
}

function areSame(one: readonly Item[], other: readonly Item[]): boolean {
  return one.length === other.length && one.every((item, index) => item === other[index]);
}

/** The height that a row has most likely, in pixels, until it was painted once. */
export function likelyHeight(row: Row | undefined): number {
  if (row?.kind !== "item") return 44;
  const { item } = row;
  if (item.kind === "call") return item.end?.failed || item.state === "approval" ? 280 : 44;
  if (item.kind === "message") return 60 + Math.min(20, Math.ceil(item.text.length / 90)) * 24;
  if (item.kind === "answer") return 24 + Math.ceil(item.parts.reduce((sum, part) => sum + (part.kind === "text" ? part.text.length : 60), 0) / 75) * 26;
  return 36;
}
