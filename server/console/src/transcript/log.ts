/** The events of the log: what each does to the items and the facts. */

import type {
  SessionEvent,
  SessionEventAnswerRecorded,
  SessionEventConversationRewound,
  SessionEventExtensionsFound,
  SessionEventHookEnded,
  SessionEventPlaceSurveyed,
  SessionEventToolsOffered,
  SessionEventTurnClaimed,
  SessionEventTurnEnded,
} from "@/api/schema";
import { recordedParts } from "./answer";
import { asked, LiveCall } from "./call";
import { agentEnded, agentStarted, approvalAnswered, approvalAsked, callEnded, place, placed, settled } from "./callevents";
import { note } from "./items";
import { accepted, dequeue, leaveSteers, sendLeftSteers, steered, steersTaken } from "./messages";
import type { AnswerItem, Note } from "./model";
import { NONE, sum, tokens, used } from "./models";
import { line, text } from "./safe";
import { forgetFirst, type State } from "./state";
import { todoItem } from "./todo";

/** The newest version of each kind of event that this page reads. */
export const KINDS: Readonly<Record<SessionEvent["type"], number>> = {
  "session.created": 1,
  "input.accepted": 3,
  "input.steered": 1,
  "steers.taken": 1,
  "turn.claimed": 3,
  "answer.recorded": 2,
  "prompt.changed": 1,
  "place.surveyed": 1,
  "extensions.found": 1,
  "hook.sent": 1,
  "hook.ended": 1,
  "tools.offered": 1,
  "approval.asked": 1,
  "approval.answered": 1,
  "call.placed": 1,
  "call.sent": 1,
  "call.ended": 2,
  "todo.changed": 1,
  "results.left_out": 1,
  "results.masked": 1,
  "context.edited": 1,
  "context.compacted": 1,
  "cancel.requested": 1,
  "turn.ended": 1,
  "conversation.rewound": 1,
  "operation.settled": 1,
  "agent.briefed": 1,
  "agent.started": 1,
  "agent.asks": 1,
  "agent.ended": 1,
  "worktree.changed": 1,
  "chat.started": 1,
  "chat.origin": 1,
};

/** The most calls that are known as not ended. */
const MOST_CALLS = 1024;

/** Carries out an event. */
export function logged(state: State, event: SessionEvent): void {
  // What the turn waited for came, or is waited for no longer.
  const notice = state.notice ? state.items.get(state.notice) : undefined;
  if (notice && "turn" in event && event.turn === notice.turn) state.dropNotice();
  switch (event.type) {
    case "session.created":
      state.models.chosen(event.model);
      return state.patch({
        title: line(event.title),
        directory: line(event.directory ?? ""),
        model: line(event.model),
      });
    case "input.accepted":
      return accepted(state, event);
    case "input.steered":
      return steered(state, event);
    case "steers.taken":
      return steersTaken(state, event.turn, event.through, event.into ?? null);
    case "turn.claimed":
      return claimed(state, event);
    case "answer.recorded":
      return recorded(state, event);
    case "prompt.changed":
      // The prompt of a session's first turn is no news.
      return state.hasEndedTurn ? add(state, event, { type: "prompt_changed" }) : undefined;
    case "place.surveyed":
      return surveyed(state, event);
    case "extensions.found":
      return extensionsFound(state, event);
    case "hook.ended":
      return hookEnded(state, event);
    case "tools.offered":
      return toolsOffered(state, event);
    case "approval.asked":
      return approvalAsked(state, event);
    case "approval.answered":
      return approvalAnswered(state, event);
    case "call.placed":
      return placed(state, event);
    case "call.sent":
    case "hook.sent":
      return undefined;
    case "call.ended":
      return callEnded(state, event);
    case "todo.changed": {
      const item = todoItem(event, state.at, state.facts.todo);
      // A list that is written again as it was is no news.
      if (item.changed.length > 0 || item.found) state.items.push(item);
      return state.patch({ todo: item.items });
    }
    case "results.left_out":
      return add(state, event, {
        type: "left_out",
        results: event.results,
        gone: event.gone ?? 0,
        shortened: event.shortened ?? 0,
      });
    case "results.masked":
      return add(state, event, { type: "masked", tokens: Math.max(0, event.before - event.after) });
    case "context.edited":
      return; // The call that edited it is shown.
    case "context.compacted": {
      const { before, after, because, carried, summary = "", no_summary } = event;
      const noSummary = no_summary == null ? null : line(no_summary);
      state.patch({ last: { ...NONE, input: after } });
      const texts = { carried: text(carried), summary: text(summary), noSummary };
      return add(state, event, { type: "compacted", before, after, because, ...texts });
    }
    case "cancel.requested":
      add(state, event, { type: "cancel", by: event.by, why: event.why ?? null });
      return state.waits(event.turn, { what: "stop" });
    case "turn.ended":
      return turnEnded(state, event);
    case "conversation.rewound":
      return rewound(state, event);
    case "operation.settled":
      return settled(state, event);
    case "agent.briefed":
      return add(state, event, {
        type: "agent_briefed",
        name: line(event.name),
        task: line(event.description),
        parent: event.parent.session,
      });
    case "agent.asks":
      return add(state, event, { type: "agent_asks", name: line(event.name), session: event.session, approval: event.approval });
    case "agent.started":
      return agentStarted(state, event);
    case "agent.ended":
      return agentEnded(state, event);
    case "worktree.changed": {
      const { path, branch } = event.worktree;
      // One that goes again is no news.
      return event.state === "removed" ? undefined : add(state, event, { type: "worktree", state: event.state, path: line(path), branch: line(branch) });
    }
    case "chat.started":
      return add(state, event, { type: "chat_started", title: line(event.title), session: event.session });
    case "chat.origin":
      return add(state, event, { type: "chat_origin", parent: event.parent.session });
  }
}

function add(state: State, event: SessionEvent, of: Note): void {
  const turn = "turn" in event && event.type !== "conversation.rewound" ? event.turn : null;
  state.items.push(note(`n:${event.seq}`, turn, state.at, of));
}

function claimed(state: State, event: SessionEventTurnClaimed): void {
  const { turn, settings, choice } = event;
  const known = state.turn(turn);
  dequeue(state, turn);
  if (known.claimed) {
    // The worker before is gone, and with it what it had heard of the model.
    if (state.answer?.turn === turn) state.voidAnswer();
    add(state, event, { type: "resumed" });
  } else {
    known.begun = state.at;
    sendLeftSteers(state);
  }
  known.claimed = true;
  if (settings) state.patch({ settings, model: line(settings.model) });
  if (choice) state.patch({ choice });
  if (state.facts.working?.turn !== turn) state.works(turn, "model");
  state.waits(turn, { what: "model" });
}

function recorded(state: State, event: SessionEventAnswerRecorded): void {
  const { turn, step, finish } = event;
  const live = state.answer?.turn === turn && state.answer.step === step ? state.answer : null;
  if (!live) state.leaveAnswer();
  state.answer = null;
  state.recorded.set(turn, step);
  const usage = tokens(event.usage);
  const model = line(event.model);
  const changed = state.models.answer(event.model, event.origin ?? null);
  const parts = recordedParts(event.parts, live?.parts(false) ?? []);
  const id = `a:${turn}:${step}`;
  const limit = event.limit ?? null;
  const item: AnswerItem = {
    kind: "answer",
    id,
    turn,
    at: state.at - (event.model_ms ?? 0),
    open: false,
    rewound: false,
    step,
    parts,
    record: { model, usage, tookMs: event.model_ms ?? 0, finish, limit },
  };
  // An answer that only asks for calls says nothing, unless it was cut short.
  if (parts.length > 0 || finish === "length" || limit) state.items.push(item);
  else state.items.remove(id);
  if (changed) add(state, event, changed);

  const calls = event.parts.filter((part) => part.type === "tool_call");
  calls.forEach((call, ordinal) => {
    const of = asked({ turn, step, ordinal, at: state.at }, call);
    state.items.push(of);
    forgetFirst(state.calls, MOST_CALLS);
    state.calls.set(of.id, new LiveCall(of.id, turn, of.request.kind === "task"));
  });

  const known = state.turn(turn);
  known.usage = sum(known.usage, usage);
  known.steps++;
  known.calls += calls.length;
  state.patch({
    model,
    models: used(state.facts.models, model, usage),
    last: usage,
    turnUsage: sum(state.facts.turnUsage, usage),
    usage: sum(state.facts.usage, usage),
  });
  state.step(turn, step);
  // The model has answered until now, though the log alone does not tell when it began.
  state.waits(turn, { what: "answering" });
  state.waitsForCalls(turn);
}

function surveyed(state: State, event: SessionEventPlaceSurveyed): void {
  const { instructions, unread = [], project } = event;
  const survey = {
    system: line(event.system),
    folder: line(event.folder, 4096),
    branch: event.branch == null ? null : line(event.branch),
  };
  state.patch({ survey });
  if (event.place) state.patch({ place: place(state, event.place) });
  if (instructions || unread.length > 0) {
    add(state, event, {
      type: "instructions",
      files: instructions?.map(({ path, cut }) => ({ path: line(path), cut: cut ?? false })) ?? null,
      unread: unread.map((why) => line(why)),
    });
  }
  if (project && !project.trusted && !state.toldOfRules) {
    state.toldOfRules = true;
    state.items.push(
      note(`n:${event.seq}:rules`, event.turn, state.at, { type: "untrusted_rules", path: line(project.path) }),
    );
  }
}

/** Says what a hook decided, or that it failed. One that did neither is no news. */
function hookEnded(state: State, event: SessionEventHookEnded): void {
  const { action, failed, decision, reason = "", message = "" } = event.end;
  if (!failed && !decision && !message) return;
  add(state, event, {
    type: "hook",
    action: line(action),
    decision: decision ?? null,
    why: line(failed ?? (message || reason)),
    failed: failed != null,
  });
}

/** Says how many extensions count, and which files wait for trust. */
function extensionsFound(state: State, event: SessionEventExtensionsFound): void {
  const { skills = [], roles = [], hooks = [], servers = [], plugins = [], unread = [] } = event.extensions;
  const trusted = (of: readonly { readonly from: { readonly trusted?: boolean } }[]) =>
    of.filter((extension) => extension.from.trusted ?? false).length;
  const untrusted = [...hooks, ...servers, ...plugins].filter(({ from }) => !(from.trusted ?? false));
  add(state, event, {
    type: "extensions",
    skills: skills.length,
    agents: roles.length,
    hooks: trusted(hooks),
    servers: trusted(servers),
    plugins: trusted(plugins),
    untrusted: [...new Set(untrusted.map(({ from }) => line(from.at)))],
    unread: unread.map((why) => line(why)),
  });
}

/** Says which tool servers there are, and what of them does not work. */
function toolsOffered(state: State, event: SessionEventToolsOffered): void {
  add(state, event, {
    type: "tool_servers",
    servers: event.servers.map(({ name, tools = [], failed, left_out = [] }) => ({
      name: line(name),
      tools: tools.length,
      failed: failed == null ? null : line(failed),
      leftOut: left_out.map((why) => line(why)),
    })),
  });
}

function turnEnded(state: State, event: SessionEventTurnEnded): void {
  const { turn, outcome } = event;
  dequeue(state, turn);
  leaveSteers(state, turn);
  if (state.answer?.turn === turn) state.leaveAnswer();
  for (const call of state.calls.values()) {
    const item = state.items.get(call.id);
    if (call.turn !== turn || item?.kind !== "call" || item.state === "background") continue;
    state.items.call(call.id, { state: "left", open: false, output: call.output() });
    state.calls.delete(call.id);
  }
  const { approvals } = state.facts;
  if (approvals.some((pending) => pending.turn === turn)) {
    state.patch({ approvals: approvals.filter((pending) => pending.turn !== turn) });
  }
  const { begun, usage, steps, calls } = state.turn(turn);
  const reason = event.reason == null ? "" : line(event.reason, 2000);
  add(state, event, { type: "turn_ended", outcome, reason, tookMs: state.at - begun, usage, steps, calls });
  state.endTurn(turn);
  state.hasEndedTurn = true;
  if (state.facts.working?.turn !== turn) return;
  state.patch({ working: null });
  const next = state.facts.queue[0];
  if (next) state.works(next.turn, "server");
}

function rewound(state: State, event: SessionEventConversationRewound): void {
  const gone = state.items.rewind(event.turn);
  state.changes.rewind(new Set(gone.map((item) => item.id)));
  // The list is as it was before that turn; the tokens of the next request are not known.
  state.patch({ todo: state.items.last("todo")?.items ?? [], last: NONE });
  const turns = new Set(
    gone.filter((item) => item.kind === "message" && (item.sent === "now" || item.sent === "queued")).map((item) => item.turn),
  );
  const before = line(event.before ?? "");
  add(state, event, { type: "rewound", by: event.by, before, turns: turns.size });
}
