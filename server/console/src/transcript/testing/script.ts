/** A session that is told event by event, and the live pieces that belong to it. */

import type { Answer, CallOutcome, Live, Part, Question, SessionEvent, TodoItem, TurnOutcome } from "@/api/schema";
import { Fold } from "../fold";
import type { Item } from "../model";
import { byteLength } from "../utf8";

/** One thing that a fold is fed. */
export type Fed = { readonly event: SessionEvent } | { readonly live: Live };

/** An event without the fields that a script adds. */
type Body = SessionEvent extends infer E ? (E extends SessionEvent ? Omit<E, "seq" | "at" | "v"> : never) : never;

/** A session under way. */
export class Script {
  readonly events: SessionEvent[] = [];
  turn = 0;
  step = 0;
  operations = 0;
  approvals = 0;

  push(body: Body): this {
    const seq = this.events.length + 1;
    this.events.push({ ...body, seq, v: 1, at: new Date(seq * 1000).toISOString() } as SessionEvent);
    return this;
  }

  created(title = "Title", model = "gpt-5"): this {
    return this.push({ type: "session.created", title, model });
  }

  /** A message whose turn is not claimed. */
  said(text: string): this {
    this.turn++;
    this.step = 0;
    return this.push({ type: "input.accepted", turn: turn(this.turn), by: "usr_1", parts: [{ type: "text", text }] });
  }

  claimed(of = this.turn): this {
    return this.push({ type: "turn.claimed", turn: turn(of), epoch: 1, replica: "rep_1" });
  }

  user(text: string): this {
    return this.said(text).claimed();
  }

  steered(text: string, number: number): this {
    const of = { turn: turn(this.turn), number, by: "usr_1" };
    return this.push({ type: "input.steered", ...of, parts: [{ type: "text", text }] });
  }

  /** An answer with a thought, words and calls; empty ones are left out. */
  answer(thought: string, words: string, calls: readonly (readonly [string, unknown])[] = [], model = "gpt-5"): this {
    this.step++;
    const parts: Part[] = [];
    if (thought) parts.push({ type: "reasoning", text: thought });
    if (words) parts.push({ type: "text", text: words });
    for (const [name, of] of calls) {
      parts.push({
        type: "tool_call",
        vendor_id: "",
        name,
        arguments: typeof of === "string" ? of : JSON.stringify(of),
      });
    }
    return this.push({
      type: "answer.recorded",
      turn: turn(this.turn),
      step: this.step,
      model,
      parts,
      finish: "complete",
      usage: { input: 1000 * this.step, cached: 10, output: 100 },
      model_ms: 12_000,
    });
  }

  placed(ordinal: number, runner = "laptop"): this {
    this.operations++;
    return this.push({
      type: "call.placed",
      ...this.call(ordinal),
      operation: `op_${this.operations}`,
      place: { runner: "run_1", runner_name: runner, sandbox: "sbx_1", isolation: "none" },
    });
  }

  ended(
    ordinal: number,
    outcome: CallOutcome,
    text: string,
    more: Partial<{ task: number; overran: boolean }> = {},
  ): this {
    return this.push({
      type: "call.ended",
      ...this.call(ordinal),
      outcome,
      parts: text ? [{ type: "text", text }] : [],
      budget_ms: 120_000,
      duration_ms: 40,
      overran: false,
      ...more,
    });
  }

  /** One call that runs and ends well. */
  ran(name: string, of: unknown, result: string): this {
    return this.answer("", "", [[name, of]])
      .placed(0)
      .ended(0, "completed", result);
  }

  asked(ordinal: number, question: Question): this {
    this.approvals++;
    const until = new Date(900_000).toISOString();
    return this.push({
      type: "approval.asked",
      ...this.call(ordinal),
      approval: `app_${this.approvals}`,
      question,
      until,
    });
  }

  answered(ordinal: number, answer: Answer, name = "kim"): this {
    const of = { approval: `app_${this.approvals}`, answer, by: "usr_2", name };
    return this.push({ type: "approval.answered", ...this.call(ordinal), ...of });
  }

  todo(items: readonly TodoItem[]): this {
    return this.push({ type: "todo.changed", turn: turn(this.turn), items: [...items] });
  }

  done(outcome: TurnOutcome = "completed", reason?: string, of = this.turn): this {
    return this.push({ type: "turn.ended", turn: turn(of), outcome, ...(reason === undefined ? {} : { reason }) });
  }

  rewound(to: number): this {
    return this.push({ type: "conversation.rewound", turn: turn(to), by: "usr_1", before: "the message" });
  }

  call(ordinal: number): { turn: string; step: number; ordinal: number } {
    return { turn: turn(this.turn), step: this.step, ordinal };
  }

  fed(): Fed[] {
    return this.events.map((event) => ({ event }));
  }

  /** The events with the live pieces of answers that came before them, cut into so many letters. */
  fedLive(letters: number): Fed[] {
    return this.events.flatMap((event): Fed[] => {
      if (event.type !== "answer.recorded") return [{ event }];
      const spoken = event.parts.filter((part) => part.type === "text" || part.type === "reasoning");
      const pieces = spoken.flatMap((part, number) =>
        cut(part.text, letters).map(({ offset, text }) => ({
          live: said(
            1,
            event.step,
            1,
            number,
            offset,
            text,
            part.type === "reasoning" ? "reasoning" : "text",
            event.turn,
          ),
        })),
      );
      return [...pieces, { event }];
    });
  }
}

/** The id of a turn. */
export function turn(number: number): string {
  return `trn_${number}`;
}

/** A piece of an answer. */
export function said(
  of: number,
  step: number,
  attempt: number,
  part: number,
  offset: number,
  text: string,
  kind: "text" | "reasoning" = "text",
  id = turn(of),
): Live {
  return { kind, turn: id, step, attempt, part, offset, text };
}

/** A piece of output of the first call of the first answer. */
export function wrote(
  offset: number,
  text: string,
  more: Partial<{ stream: "stdout" | "stderr"; ordinal: number }> = {},
): Live {
  const of = { turn: turn(1), step: 1, ordinal: 0, operation: "op_1", stream: "stdout" as const };
  return { kind: "output", ...of, offset, text, bytes: byteLength(text), ...more };
}

/** A text in pieces of so many letters, with their offsets in bytes. */
export function cut(text: string, letters: number): { offset: number; text: string }[] {
  const all = [...text];
  const pieces = [];
  for (let at = 0, offset = 0; at < all.length; at += letters) {
    const piece = all.slice(at, at + letters).join("");
    pieces.push({ offset, text: piece });
    offset += byteLength(piece);
  }
  return pieces;
}

/** A fold that was fed these. */
export function folded(fed: readonly Fed[], fold = new Fold(() => 10_000_000)): Fold {
  for (const one of fed) {
    if ("event" in one) fold.event(one.event);
    else fold.live(one.live);
  }
  return fold;
}

/** The items in short, one line each. */
export function shown(fold: Fold): string[] {
  return fold.items().map((item) => `${item.rewound ? "~" : ""}${short(item)}`);
}

function short(item: Item): string {
  switch (item.kind) {
    case "message":
      return `${item.sent}${item.waiting ? " waiting" : ""}: ${item.text}`;
    case "answer":
      return item.parts.map((part) => `${part.kind}${part.open ? "…" : ""}: ${part.text}`).join(" | ");
    case "call":
      return `${item.tool} ${item.state}`;
    case "todo":
      return `todo ${item.items.length}`;
    case "note":
      return `(${item.note.type})`;
  }
}
