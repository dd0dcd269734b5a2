/** The events of tool calls, their questions and their operations: what each does to the items and the facts. */

import type {
  SessionEventAgentEnded,
  SessionEventAgentStarted,
  SessionEventApprovalAnswered,
  SessionEventApprovalAsked,
  SessionEventCallEnded,
  SessionEventCallPlaced,
  SessionEventOperationSettled,
} from "@/api/schema";
import { answered, question } from "./approval";
import { callId, ended } from "./call";
import { note } from "./items";
import type { Note, Place } from "./model";
import { about } from "./request";
import { line } from "./safe";
import { forgetFirst, type State } from "./state";

/** The most operations whose truth may come later. */
const MOST_OPERATIONS = 256;

/** The most questions that are known at a time. */
const MOST_APPROVALS = 64;

/** The place of an operation; the same object as before where it is the same place. */
export function place(state: State, of: SessionEventCallPlaced["place"]): Place {
  const { place: before, survey } = state.facts;
  const made: Place = {
    runner: of.runner,
    runnerName: line(of.runner_name),
    sandbox: of.sandbox,
    isolation: line(of.isolation),
    folder: survey?.folder ?? "",
  };
  // The same place is the same object, so that what shows it is not painted again.
  const isSame = before && (Object.keys(made) as (keyof Place)[]).every((key) => before[key] === made[key]);
  return isSame ? before : made;
}

/** People are asked before a call goes on. */
export function approvalAsked(state: State, event: SessionEventApprovalAsked): void {
  const id = callId(event);
  const isShown = state.items.get(id)?.kind === "call";
  const of = { id: event.approval, question: question(event.question), until: Date.parse(event.until) };
  if (isShown) state.items.call(id, { state: "approval", approval: { ...of, answered: null } });
  const pending = { ...of, turn: event.turn, item: isShown ? id : null, askedAt: state.at };
  state.patch({ approvals: [...state.facts.approvals.slice(1 - MOST_APPROVALS), pending] });
  state.waitsForCalls(event.turn);
}

/** A question has its outcome. */
export function approvalAnswered(state: State, event: SessionEventApprovalAnswered): void {
  if (event.by) state.person(event.by, event.name ?? "");
  state.patch({ approvals: state.facts.approvals.filter((pending) => pending.id !== event.approval) });
  const of = answered(event, state.at);
  const item = state.items.get(callId(event));
  if (item?.kind !== "call") {
    const words: Note = { type: "answered", approval: event.approval, answered: of };
    return state.items.push(note(`n:${event.seq}`, event.turn, state.at, words));
  }
  const approval = item.approval?.id === event.approval ? { ...item.approval, answered: of } : item.approval;
  const command = of.answer.outcome === "allowed" ? of.answer.command : null;
  // A person may put another command in place of the proposed one, which stays in the question.
  const request = command && item.request.kind === "shell" ? { ...item.request, command } : item.request;
  state.items.call(item.id, { approval, request, state: item.state === "approval" ? "asked" : item.state });
  state.waitsForCalls(event.turn);
}

/** From this ordinal on, an operation is one of a hook and none of a call. */
const HOOK_ORDINALS = 1 << 20;

/** An operation of a call was placed. */
export function placed(state: State, event: SessionEventCallPlaced): void {
  // The command of a hook is not shown as a call.
  if (event.ordinal >= HOOK_ORDINALS) return;
  // Nor is the look at the place of a turn.
  if (event.step === 0) {
    state.look = event.operation;
    return;
  }
  const id = callId(event);
  const where = place(state, event.place);
  state.items.call(id, { state: "running", place: where, placedAt: state.at, operation: event.operation });
  state.patch({ place: where });
  state.waitsForCalls(event.turn);
}

/** An agent works for a call from now on. */
export function agentStarted(state: State, event: SessionEventAgentStarted): void {
  const agent = { name: line(event.name), session: event.session, ended: null };
  state.items.call(callId(event), { state: "running", placedAt: state.at, agent });
  state.waitsForCalls(event.turn);
}

/** The agent of a call has ended. A call that did not wait for it shows that too. */
export function agentEnded(state: State, event: SessionEventAgentEnded): void {
  const id = callId(event);
  const item = state.items.get(id);
  if (item?.kind !== "call" || !item.agent) return;
  const { outcome, steps, tokens } = event;
  state.items.call(id, { agent: { ...item.agent, ended: { outcome, steps, tokens } } });
}

/** A call ended, or went to the background. */
export function callEnded(state: State, event: SessionEventCallEnded): void {
  const id = callId(event);
  const live = state.calls.get(id);
  const item = state.items.get(id);
  if (!live || item?.kind !== "call") return;
  state.stale.delete(id);
  const end = ended(item, event, live);
  const isTask = end.state === "background";
  // The output of a task goes on; it is on the page as it was heard.
  state.items.call(id, isTask ? { ...end, output: live.output() ?? end.output ?? null } : end);
  if (!isTask) state.calls.delete(id);
  const after = state.items.get(id);
  if (after?.kind === "call") state.changes.take(after);
  if (item.operation && (isTask || event.outcome === "unknown")) {
    forgetFirst(state.operations, MOST_OPERATIONS);
    state.operations.set(item.operation, id);
  }
  if (isTask && event.task != null && item.operation) {
    state.addTask({
      number: event.task,
      operation: item.operation,
      item: id,
      tool: item.tool,
      about: about(item.request),
      runnerName: item.place?.runnerName ?? "",
      startedAt: item.placedAt ?? item.at,
      lastLine: line(live.lastLine()),
      ended: null,
    });
  }
  state.waitsForCalls(event.turn);
}

/** The truth about an operation came after its call had ended. */
export function settled(state: State, event: SessionEventOperationSettled): void {
  const { operation } = event;
  if (operation === state.look) return;
  const summary = line(event.summary);
  const task = state.task(operation, { ended: summary });
  const id = state.operations.get(operation);
  if (id) {
    const live = state.calls.get(id);
    if (live) state.items.call(id, { output: live.output() });
    state.calls.delete(id);
    state.operations.delete(operation);
    state.items.call(id, { settled: summary, open: false });
  }
  const of: Note = { type: "settled", task: task?.number ?? null, operation, summary };
  state.items.push(note(`n:${event.seq}`, null, state.at, of));
}
