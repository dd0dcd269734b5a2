/** The items of a conversation in their order, each immutable. */

import type { AnswerItem, CallItem, Item, MessageItem, NoteItem } from "./model";
import { wholeCharacters } from "./safe";
import { RecordedOutput } from "./output";

/** The most text of all items, in UTF-16 units; beyond it the results of the oldest calls are cut. */
const MOST_UNITS = 24 << 20;

/** What is left of a result that is cut. */
const LEFT_UNITS = 1024;

/** The items of a conversation. */
export class Items {
  #list: Item[] = [];
  #waiting: MessageItem[] = [];
  #places = new Map<string, number>();
  #shown: readonly Item[] | null = [];
  #units = 0;
  /** The results of the items before this one are cut already. */
  #cutTo = 0;

  /** All items: those of the conversation, then the messages that wait. The same array until one changes. */
  all(): readonly Item[] {
    return (this.#shown ??= [...this.#list, ...this.#waiting]);
  }

  get(id: string): Item | undefined {
    const place = this.#places.get(id);
    return place === undefined ? this.#waiting.find((item) => item.id === id) : this.#list[place];
  }

  /** Adds an item at the end of the conversation. One with the same id is replaced where it is. */
  push(item: Item): void {
    if (this.#places.has(item.id)) return this.replace(item);
    this.#shown = null;
    this.#places.set(item.id, this.#list.length);
    this.#list.push(item);
    this.#units += weight(item);
    this.#bound();
  }

  /** Adds a message that waits: those that steer the turn that works stand before those that wait for its end. */
  wait(item: MessageItem): void {
    this.#shown = null;
    const queued = item.sent === "steered" ? this.#waiting.findIndex((other) => other.sent === "queued") : -1;
    this.#waiting.splice(queued < 0 ? this.#waiting.length : queued, 0, item);
  }

  /** Moves a message that waited to the end of the conversation: the model is sent it, or is not yet (`unread`). */
  take(id: string, unread = false): void {
    const place = this.#waiting.findIndex((item) => item.id === id);
    const [item] = place < 0 ? [] : this.#waiting.splice(place, 1);
    if (item) this.push({ ...item, waiting: unread, rewindable: item.sent === "queued" && item.compacts === null });
  }

  /** The messages that wait. */
  get waiting(): readonly MessageItem[] {
    return this.#waiting;
  }

  replace(item: Item): void {
    const place = this.#places.get(item.id);
    const before = place === undefined ? undefined : this.#list[place];
    if (place === undefined || !before) return;
    this.#shown = null;
    this.#list[place] = item;
    this.#units += weight(item) - weight(before);
  }

  /** Changes some fields of a call. */
  call(id: string, change: Partial<CallItem>): void {
    const item = this.get(id);
    if (item?.kind === "call") this.replace({ ...item, ...change });
  }

  /** Takes an item out, which is one of the last. */
  remove(id: string): void {
    const waits = this.#waiting.findIndex((item) => item.id === id);
    if (waits >= 0) {
      this.#shown = null;
      this.#waiting.splice(waits, 1);
    }
    const place = this.#places.get(id);
    const item = place === undefined ? undefined : this.#list[place];
    if (place === undefined || !item) return;
    this.#shown = null;
    this.#list.splice(place, 1);
    this.#places.delete(id);
    this.#units -= weight(item);
    for (let at = place; at < this.#list.length; at++) this.#places.set((this.#list[at] as Item).id, at);
  }

  /** Marks the items from the message of a turn on as rewound; returns them. */
  rewind(turn: string): readonly Item[] {
    const from = this.#list.findIndex((item) => item.turn === turn && !item.rewound);
    if (from < 0) return [];
    const gone = this.#list.slice(from).filter((item) => !item.rewound);
    for (const item of gone) {
      this.replace(
        item.kind === "message" ? { ...item, rewound: true, rewindable: false } : { ...item, rewound: true },
      );
    }
    return gone;
  }

  /** The last item that this tells, among those that are part of the conversation. */
  last<K extends Item["kind"]>(kind: K): Extract<Item, { kind: K }> | undefined {
    const is = (item: Item): item is Extract<Item, { kind: K }> => item.kind === kind && !item.rewound;
    return this.#list.findLast(is);
  }

  #bound(): void {
    while (this.#units > MOST_UNITS && this.#cutTo < this.#list.length) {
      const item = this.#list[this.#cutTo] as Item;
      if (item.open) return;
      this.#cutTo++;
      if (item.kind === "call") this.replace(shortened(item));
      else if (item.kind === "answer") this.replace(withoutThoughts(item));
    }
  }
}

/** A note of this turn. */
export function note(id: string, turn: string | null, at: number, of: NoteItem["note"], open = false): NoteItem {
  return { kind: "note", id, turn, at, open, rewound: false, note: of };
}

/** A call whose result and arguments are cut; its stored output, and its event, have all of it. */
function shortened(item: CallItem): CallItem {
  const { request } = item;
  const result = copied(item.result);
  const cut =
    request.kind === "write"
      ? { ...request, content: copied(request.content) }
      : request.kind === "edit"
        ? { ...request, old: copied(request.old), new: copied(request.new) }
        : request;
  return {
    ...item,
    request: cut,
    result,
    resultLeftOut: item.resultLeftOut + item.result.length - result.length,
    output: item.output instanceof RecordedOutput ? item.output.shortened(LEFT_UNITS) : item.output,
  };
}

function withoutThoughts(item: AnswerItem): AnswerItem {
  if (!item.parts.some((part) => part.kind === "thoughts" && part.text.length > LEFT_UNITS)) return item;
  const parts = item.parts.map((part) => (part.kind === "thoughts" ? { ...part, text: copied(part.text) } : part));
  return { ...item, parts };
}

/** The beginning of a text as a text of its own. A slice would keep the whole text in memory. */
function copied(text: string): string {
  if (text.length <= LEFT_UNITS) return text;
  return JSON.parse(JSON.stringify(wholeCharacters(text, LEFT_UNITS))) as string;
}

/** The text of an item, in UTF-16 units, about. */
function weight(item: Item): number {
  switch (item.kind) {
    case "message":
      return item.text.length;
    case "answer":
      return item.parts.reduce((all, part) => all + part.text.length, 0);
    case "call": {
      const { request, result, output } = item;
      const written =
        request.kind === "write"
          ? request.content.length
          : request.kind === "edit"
            ? request.old.length + request.new.length
            : 0;
      return written + result.length + (output instanceof RecordedOutput ? output.units : 0);
    }
    case "todo":
    case "note":
      return 0;
  }
}
