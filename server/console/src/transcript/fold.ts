/**
 * One fold: from the feed of a session (its events, and the live pieces of unfinished work) to items and facts.
 *
 * It outlives connections. Events have numbers, and pieces have offsets: what comes twice is dropped. An event behind a
 * gap is refused, and the caller subscribes again from {@link Fold.seq} on.
 *
 * Memory: an item keeps what is shown. Live outputs keep 200 lines and 64 KiB each; results of the oldest calls are
 * cut once all texts together have 24 Mi characters.
 */

import type { Live, SessionEvent } from "@/api/schema";
import { LiveAnswer } from "./answer";
import type { Facts } from "./facts";
import { note } from "./items";
import { KINDS, logged } from "./log";
import type { AnswerItem, Item } from "./model";
import { line } from "./safe";
import { State } from "./state";

/** The difference of clocks that is none for people, in milliseconds. */
const TOLERATED_MS = 2_000;

/** The feed of one session, folded. */
export class Fold {
  /** The number of the last event that was taken: what to subscribe with. */
  seq = 0;
  /** The events of a known kind that could not be read. */
  unreadable = 0;
  readonly #state: State;

  /** `clock` gives this machine's time, in milliseconds since 1970. */
  constructor(clock: () => number = Date.now) {
    this.#state = new State(clock);
    this.#clock = clock;
  }

  readonly #clock: () => number;

  /** Takes the next event of the log. `known`: it was taken before. `gap`: events before it are missing. */
  event(event: SessionEvent): "taken" | "known" | "gap" {
    if (event.seq <= this.seq) return "known";
    if (event.seq > this.seq + 1) return "gap";
    this.seq = event.seq;
    const state = this.#state;
    const at = Date.parse(event.at);
    state.at = Number.isFinite(at) ? at : state.at;
    if (state.caughtUp) this.#skew(state.at - this.#clock());
    // A kind or a version that only a newer page knows is passed over.
    const known = Object.hasOwn(KINDS, event.type) ? KINDS[event.type] : 0;
    if (event.v > known) return "taken";
    try {
      logged(state, event);
    } catch (error) {
      // One event that is not as it should be must not cost the rest of the log.
      this.unreadable++;
      console.warn("an event could not be read", event.seq, error);
    }
    return "taken";
  }

  /** Takes a piece of unfinished work. */
  live(live: Live): void {
    const state = this.#state;
    if (state.hasEnded(live.turn) && live.kind !== "output" && live.kind !== "gap") return;
    switch (live.kind) {
      case "text":
      case "reasoning": {
        if (live.step <= (state.recorded.get(live.turn) ?? 0)) return;
        const answer = this.#answer(live.turn, live.step);
        if (answer.take(live)) this.#spoken(answer);
        state.dropNotice();
        state.step(live.turn, live.step);
        state.waits(live.turn, { what: live.kind === "text" ? "answering" : "thinking" });
        return;
      }
      case "taken_back": {
        if (live.step <= (state.recorded.get(live.turn) ?? 0)) return;
        if (this.#answer(live.turn, live.step).takeBack(live.attempt)) state.items.remove(state.answer?.id ?? "");
        state.waits(live.turn, { what: "model" });
        return;
      }
      case "output":
      case "gap": {
        const call = state.callOf(live);
        const isNew = live.kind === "output" ? call?.write(live) : call?.gap(live);
        if (call && isNew) state.stale.add(call.id);
        return;
      }
      case "notice":
        return this.#notice(live.turn, line(live.text));
    }
  }

  /** The log was read to its end: what comes from now on happens now. */
  caughtUp(): void {
    this.#state.caughtUp = true;
  }

  /** Something may be missed from now on: what comes next is what happened in the meantime. */
  behind(): void {
    this.#state.caughtUp = false;
  }

  /** The server's time minus this machine's, in milliseconds, as live events tell; 0 where that is less than 2 s. */
  get skewMs(): number {
    return this.#state.skewMs;
  }

  /** The item with this id, without the live pieces since the last snapshot. */
  item(id: string): Item | undefined {
    return this.#state.items.get(id);
  }

  /** The items now; the same array until one changes. */
  items(): readonly Item[] {
    this.#refresh();
    return this.#state.items.all();
  }

  /** The facts now; the same object until one changes. */
  facts(): Facts {
    this.#refresh();
    const { changes, facts } = this.#state;
    const files = changes.files();
    if (files !== facts.files) this.#state.patch({ files, filesDropped: changes.dropped });
    return this.#state.given();
  }

  /** Takes the difference of the clocks, unless the way of an event through the network may explain it. */
  #skew(ms: number): void {
    if (Math.abs(ms - this.#state.skewMs) > TOLERATED_MS) this.#state.skewMs = ms;
  }

  /** Makes the items again that live pieces have changed: once for each snapshot, not for each piece. */
  #refresh(): void {
    const state = this.#state;
    for (const id of state.stale) {
      const call = state.calls.get(id);
      if (call) {
        state.items.call(id, { output: call.output() });
        const item = state.items.get(id);
        const operation = item?.kind === "call" && item.state === "background" ? item.operation : null;
        if (operation) state.task(operation, { lastLine: line(call.lastLine()) });
      } else if (state.answer?.id === id) {
        const item = state.items.get(id);
        if (item?.kind === "answer") state.items.replace({ ...item, parts: state.answer.parts() });
      }
    }
    state.stale.clear();
  }

  #answer(turn: string, step: number): LiveAnswer {
    const state = this.#state;
    if (state.answer?.turn === turn && state.answer.step === step) return state.answer;
    state.leaveAnswer();
    state.answer = new LiveAnswer(turn, step, `a:${turn}:${step}`);
    return state.answer;
  }

  #spoken(answer: LiveAnswer): void {
    const state = this.#state;
    if (state.items.get(answer.id)) {
      state.stale.add(answer.id);
      return;
    }
    const item: AnswerItem = {
      kind: "answer",
      id: answer.id,
      turn: answer.turn,
      at: state.serverTime(),
      open: true,
      rewound: false,
      step: answer.step,
      parts: answer.parts(),
      record: null,
    };
    state.items.push(item);
  }

  #notice(turn: string, text: string): void {
    const state = this.#state;
    state.waits(turn, { what: "notice", text });
    const known = state.notice ? state.items.get(state.notice) : undefined;
    if (known?.kind === "note" && known.turn === turn) {
      if (known.note.type === "notice" && known.note.text !== text) {
        state.items.replace({ ...known, note: { type: "notice", text } });
      }
      return;
    }
    state.dropNotice();
    state.notice = `l:${turn}:${this.seq}`;
    state.items.push(note(state.notice, turn, state.serverTime(), { type: "notice", text }, true));
  }
}
