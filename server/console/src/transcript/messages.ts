/** The messages of people: what each does to the items and the facts. */

import type { SessionEventInputAccepted, SessionEventInputSteered } from "@/api/schema";
import { images, words } from "./call";
import type { MessageItem } from "./model";
import { line, text } from "./safe";
import type { State } from "./state";

/** The item of a message. */
export function message(
  state: State,
  event: SessionEventInputAccepted | SessionEventInputSteered,
  sent: MessageItem["sent"],
): MessageItem {
  const compacts = event.type === "input.accepted" ? (event.compacts ?? null) : null;
  return {
    kind: "message",
    id: `m:${event.seq}`,
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
    movedTo: null,
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

/** Messages that steer the turn were taken, up to this number, or became the message of another turn. */
export function steersTaken(state: State, turn: string, through: number, into: string | null): void {
  let number = 0;
  for (const item of state.items.all()) {
    if (item.kind !== "message" || item.turn !== turn || item.sent !== "steered") continue;
    number++;
    if (number <= through && item.waiting) state.items.message(item.id, { waiting: false, movedTo: into });
  }
}
