/** The answer that the model gives now, before the log records it: pieces with offsets, in attempts. */

import type { LiveReasoning, LiveText, Part } from "@/api/schema";
import type { AnswerPart } from "./model";
import { text } from "./safe";
import { behind, byteLength } from "./utf8";

/** The most text of one live part, in bytes. The log has the rest. */
const MOST_LIVE = 4 << 20;

/** The most live parts of one answer. */
const MOST_PARTS = 256;

/** The pieces of one part that wait for the gap before them. */
const MOST_AHEAD = 256;

interface LivePart {
  readonly part: number;
  readonly kind: AnswerPart["kind"];
  text: string;
  /** The offset behind the last byte that was taken. */
  end: number;
  readonly ahead: Map<number, string>;
  view: AnswerPart | null;
}

/** An answer under way. */
export class LiveAnswer {
  readonly #parts: LivePart[] = [];
  #attempt = 0;

  constructor(
    readonly turn: string,
    readonly step: number,
    /** The id of its item. */
    readonly id: string,
  ) {}

  /** Takes a piece; true if it changed something. A higher attempt begins again, a lower one is void. */
  take(live: LiveText | LiveReasoning): boolean {
    if (live.attempt < this.#attempt) return false;
    if (live.attempt > this.#attempt) {
      this.#attempt = live.attempt;
      this.#parts.length = 0;
    }
    const part = this.#part(live.part ?? 0, live.kind === "text" ? "text" : "thoughts");
    return part !== null && take(part, live.offset, live.text);
  }

  /** Takes an attempt back; true if that changed something. Later pieces of it are dropped. */
  takeBack(attempt: number): boolean {
    if (attempt < this.#attempt) return false;
    this.#attempt = attempt + 1;
    const had = this.#parts.length > 0;
    this.#parts.length = 0;
    return had;
  }

  /** The parts as they are now; one that did not change is the same object. The last one is open. */
  parts(isOpen = true): readonly AnswerPart[] {
    const shown = this.#parts.filter((part) => part.text !== "");
    return shown.map((part, at) => {
      const open = isOpen && at === shown.length - 1;
      const view = part.view;
      if (view && view.open === open && view.text === part.text) return view;
      return (part.view = { id: part.part, kind: part.kind, text: part.text, open });
    });
  }

  #part(number: number, kind: AnswerPart["kind"]): LivePart | null {
    const known = this.#parts.find((part) => part.part === number && part.kind === kind);
    if (known) return known;
    if (this.#parts.length >= MOST_PARTS) return null;
    const part: LivePart = { part: number, kind, text: "", end: 0, ahead: new Map(), view: null };
    this.#parts.push(part);
    // A server of an earlier release numbers no parts: thoughts come first.
    this.#parts.sort((a, b) => a.part - b.part || (a.kind < b.kind ? 1 : -1));
    return part;
  }
}

/** The parts of a recorded answer, with the parts that were seen live where they are the same. */
export function recordedParts(parts: readonly Part[], seen: readonly AnswerPart[]): readonly AnswerPart[] {
  const recorded: AnswerPart[] = [];
  let id = 0;
  for (const part of parts) {
    if (part.type !== "text" && part.type !== "reasoning") continue;
    const kind = part.type === "text" ? "text" : "thoughts";
    const words = text(part.text);
    const view = seen.find((one) => one.id === id && one.kind === kind && one.text === words && !one.open);
    if (words.trim() !== "") recorded.push(view ?? { id, kind, text: words, open: false });
    id++;
  }
  return recorded;
}

function take(part: LivePart, offset: number, piece: string): boolean {
  if (offset > part.end) {
    if (part.ahead.size < MOST_AHEAD && (part.ahead.get(offset)?.length ?? 0) < piece.length)
      part.ahead.set(offset, piece);
    return false;
  }
  let changed = append(part, offset, piece);
  while (part.ahead.size > 0) {
    const next = [...part.ahead.keys()].filter((at) => at <= part.end);
    if (next.length === 0) break;
    for (const at of next) {
      changed = append(part, at, part.ahead.get(at) ?? "") || changed;
      part.ahead.delete(at);
    }
  }
  return changed;
}

/** Appends what of a piece is new. */
function append(part: LivePart, offset: number, piece: string): boolean {
  const rest = offset === part.end ? piece : behind(piece, part.end - offset);
  if (!rest || part.end > MOST_LIVE) return false;
  part.text += text(rest);
  part.end += byteLength(rest);
  return true;
}
