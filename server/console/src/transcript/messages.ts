/** The messages of people: what each does to the items and the facts. */

import type { SessionEventInputAccepted, SessionEventInputSteered } from "@/api/schema";
import { images, words } from "./call";
import type { MessageItem } from "./model";
import { line, text } from "./safe";
import type { State } from "./state";

function message(
  state: State,
  event: SessionEventInputAccepted | SessionEventInputSteered,
  sent: MessageItem["sent"],
): MessageItem {
  const compacts = event.type === "input.accepted" ? (event.compacts ?? null) : null;
  return {
    kind: "message",
    id: event.type === "input.steered" ? steerId(event.turn, event.number) : `m:${event.seq}`,
    turn: event.turn,
    at: state.at,
    open: false,
    rewound: false,
    text: text(words(event.parts, "\n\n")).trimEnd(),
    images: images(event.parts),
    by: event.by,
    clientId: event.client_id ?? null,
    sent,
    waiting: sent !== "now",
    compacts: compacts === null ? null : text(compacts),
    rewindable: sent === "now" && compacts === null,
  };
}

/** A message was accepted: it starts its turn, or waits for the turn that works. */
export function accepted(state: State, event: SessionEventInputAccepted): void {
  if (!state.facts.working) {
    state.items.push(message(state, event, "now"));
    return state.works(event.turn, "server");
  }
  const item = message(state, event, "queued");
  state.items.wait(item);
  const first = item.text.trimStart().split("\n", 1)[0] ?? "";
  const waits = { turn: event.turn, item: item.id, text: line(first), images: item.images.length, by: event.by };
  state.patch({ queue: [...state.facts.queue, waits] });
}

/** Puts a message that waited into its place in the conversation. */
export function dequeue(state: State, turn: string): void {
  const waits = state.facts.queue.find((queued) => queued.turn === turn);
  if (!waits) return;
  state.items.take(waits.item);
  state.patch({ queue: state.facts.queue.filter((queued) => queued !== waits) });
}

/** A message joins the turn that works. It waits until the model is sent it, before the model's next answer. */
export function steered(state: State, event: SessionEventInputSteered): void {
  state.items.wait(message(state, event, "steered"));
}

/**
 * Messages that steer the turn were taken, up to this number. Where they became the message of another turn, that is
 * shown in their place.
 */
export function steersTaken(state: State, turn: string, through: number, into: string | null): void {
  const taken: string[] = [];
  for (let number = through; number > 0; number--) {
    const item = state.items.get(steerId(turn, number));
    if (item?.kind !== "message" || !item.waiting) break;
    taken.unshift(item.id);
  }
  for (const id of taken) {
    if (into === null) state.items.take(id);
    else state.items.remove(id);
  }
}

/**
 * The turn is over: messages that steered it and were not taken have their place before its end. The model is sent them
 * with the next turn, unless they become a message of that turn.
 */
export function leaveSteers(state: State, turn: string): void {
  const left = state.items.waiting.filter((item) => item.sent === "steered" && item.turn === turn);
  for (const item of left) state.items.take(item.id, true);
  state.leftSteers.push(...left.map((item) => item.id));
}

/** A turn begins: the model is sent the messages that earlier turns left, but for those that were gone back from. */
export function sendLeftSteers(state: State): void {
  for (const id of state.leftSteers.splice(0)) {
    const item = state.items.get(id);
    if (item?.kind === "message" && !item.rewound) state.items.replace({ ...item, sent: "left", waiting: false });
  }
}

function steerId(turn: string, number: number): string {
  return `s:${turn}:${number}`;
}
