/**
 * The model of what a session shows: its items in order, and its facts.
 *
 * Everything here is immutable. An item that did not change keeps its identity (`===`) from one snapshot to the next;
 * so do the parts of an answer and the values of the facts. Every text of a stranger is harmless plain text: its only
 * control characters are `\n` and `\t`. It is never HTML. Times are milliseconds since 1970.
 */

import type {
  Answer,
  ApprovalId,
  Awaited,
  CallOutcome,
  FindingCategory,
  OperationId,
  Question,
  RunnerId,
  SandboxId,
  SessionId,
  TodoState,
  TurnId,
  TurnLimit,
  TurnOutcome,
  UserId,
} from "@/api/schema";
import type { OutputLine } from "./ansi";
import type { Note } from "./note";
import type { Request } from "./request";

/** The fields that every item has. */
interface ItemBase {
  /** A key that stays the same from the first sign of the item to its end, also after a reload. */
  readonly id: string;
  /** The turn that it belongs to; absent for things between turns. */
  readonly turn: TurnId | null;
  /** The time at which it began, by the server's clock. */
  readonly at: number;
  /** True while it may still change. */
  readonly open: boolean;
  /** True if a person went back to before it: it is no part of the conversation any more. */
  readonly rewound: boolean;
}

/** One thing that a session shows. */
export type Item = MessageItem | AnswerItem | CallItem | TodoItem | NoteItem;

/** A message of a person. */
export interface MessageItem extends ItemBase {
  readonly kind: "message";
  readonly text: string;
  readonly images: readonly Image[];
  /** The person who sent it; names are in {@link Facts.people}. */
  readonly by: UserId;
  /** The idempotency key with which a client sent it, by which that client knows its own message again. */
  readonly clientId: string | null;
  /** The way in which it came: it started its turn, it waited for an earlier turn, it joined a turn that worked, or it was left by one. */
  readonly sent: "now" | "queued" | "steered" | "left";
  /**
   * True while the model has not been sent it. It stands behind all other items: those that steer first, then those that
   * are queued. A steering message whose turn ended first stands before that end, and is sent with the next turn.
   */
  readonly waiting: boolean;
  /** Present if it asks to compact the conversation: what matters most. The model is not sent such a message. */
  readonly compacts: string | null;
  /** True if a person can go back to before it once no turn works: it started a turn of the conversation. */
  readonly rewindable: boolean;
}

/** A picture of a message or of a result: `GET /api/v1/sessions/{session}/images/{digest}`. */
export interface Image {
  readonly digest: string;
  readonly mediaType: string;
  readonly bytes: number;
}

/** An answer of the model; it is open while it streams. An answer of tool calls alone has no item. */
export interface AnswerItem extends ItemBase {
  readonly kind: "answer";
  /** The model call in the turn, from 1. */
  readonly step: number;
  /** Text and thoughts, in the order in which the model gave them. */
  readonly parts: readonly AnswerPart[];
  /** The rest is known once the answer is recorded; `null` before. */
  readonly record: AnswerRecord | null;
}

/** A text or a thought of an answer. */
export interface AnswerPart {
  /** A key within its item. */
  readonly id: number;
  readonly kind: "text" | "thoughts";
  /** Markdown of the model. */
  readonly text: string;
  /** True while more of it may come. */
  readonly open: boolean;
}

/** The facts of an answer that its event tells. */
export interface AnswerRecord {
  readonly model: string;
  readonly usage: Tokens;
  /** The time that it took, with every attempt, in milliseconds; 0 if it is not known. */
  readonly tookMs: number;
  /** `length`: the model reached its own length limit. `cancelled`: the turn was stopped while it spoke. */
  readonly finish: "complete" | "length" | "cancelled";
  /** The limit of the turn, where it was reached and this is the summary. */
  readonly limit: TurnLimit | null;
}

/** A tool call. */
export interface CallItem extends ItemBase {
  readonly kind: "call";
  readonly step: number;
  /** Its place in the answer, from 0. */
  readonly ordinal: number;
  /** The tool, as the model named it. */
  readonly tool: string;
  /** The thing that it asks for, for display. */
  readonly request: Request;
  /**
   * `asked`: the model asked for it. `approval`: a person is asked. `running`: it is placed. `background`: it goes on
   * as a task. `ended`: see {@link CallItem.end}. `left`: its turn ended before it did.
   */
  readonly state: "asked" | "approval" | "running" | "background" | "ended" | "left";
  /** The place where it runs or ran; `null` before it is placed, and for tools of the server itself. */
  readonly place: Place | null;
  /** The time at which it was placed, by the server's clock. */
  readonly placedAt: number | null;
  /** The operation on its runner; its stored output is `GET /api/v1/operations/{id}/output`. */
  readonly operation: OperationId | null;
  /** The output of the program, live or as recorded; `null` if the tool is no program or wrote nothing yet. */
  readonly output: Output | null;
  /** The newest question to people about this call. */
  readonly approval: ApprovalState | null;
  /** Its end; `null` before. A task has one too: it tells that the call went to the background. */
  readonly end: CallEnd | null;
  /** The result of a tool that is no program; empty before the end. */
  readonly result: string;
  /** The bytes of the result that are not kept here, because the session is very long. */
  readonly resultLeftOut: number;
  readonly images: readonly Image[];
  /** The file that it read, wrote or edited, relative to the root of the sandbox. */
  readonly file: { readonly path: string; readonly changed: boolean } | null;
  /** The number of the background task that it became, from 1. */
  readonly task: number | null;
  /** The end of that task in words; `null` while it runs. */
  readonly settled: string | null;
  /** The agent that works for it in a session of its own. */
  readonly agent: CallAgent | null;
}

/** An agent that works for a call. */
export interface CallAgent {
  readonly name: string;
  readonly session: SessionId;
  /** Its end; `null` while it works. */
  readonly ended: { readonly outcome: TurnOutcome; readonly steps: number; readonly tokens: number } | null;
}

/** The place of a call, as it was when the call was placed. */
export interface Place {
  readonly runner: RunnerId;
  readonly runnerName: string;
  readonly sandbox: SandboxId;
  /** The isolation that is proved there: `none`, or properties joined by `+`. */
  readonly isolation: string;
  /** The absolute path of the session's folder there; empty if it is not known. */
  readonly folder: string;
}

/** The output of a program, as a terminal shows it; at most the last 200 lines and 64 KiB. */
export interface Output {
  /** The lines. A recorded output is taken apart by this call, so call it for painting only, and keep the answer. */
  lines(): readonly OutputLine[];
  /** The bytes before them that are not here; ask for the stored output. */
  readonly leftOut: number;
  /** The bytes between them that never came: the connection was slow or lost, or they are not stored. */
  readonly missing: number;
}

/** The end of a call. */
export interface CallEnd {
  readonly outcome: CallOutcome;
  /** The exit code of a command that ended by itself. */
  readonly exit: number | null;
  /** The end of a command in the server's words where it was no plain exit, or the reason of a failure; one line. */
  readonly reason: string;
  /** True if it is to be seen as a failure: the outcome, or an exit code other than 0. */
  readonly failed: boolean;
  readonly durationMs: number;
  readonly budgetMs: number;
  /** True if it took longer than it was given. */
  readonly overran: boolean;
  /** True if no runner could take it; the turn ends with the reason. */
  readonly unplaced: boolean;
  /** The thing that it still waited for. */
  readonly awaits: Awaited | null;
  /** True if the model was given only a part of the result. */
  readonly excerpt: boolean;
  /** The kind of text in the result that looks most like instructions to the model. */
  readonly finding: FindingCategory | null;
}

/** A question to people about a call. */
export interface ApprovalState {
  readonly id: ApprovalId;
  /**
   * The question, for display: each invisible or control character in it is written out, as `<U+200B>`. An answer needs
   * its digest, and a person who changes the command needs its true text: `GET /api/v1/approvals/{id}` has both.
   */
  readonly question: Question;
  /** The time after which no answer counts, by the server's clock. */
  readonly until: number;
  /** Its outcome; `null` while it waits. */
  readonly answered: Answered | null;
}

/** The outcome of a question. */
export interface Answered {
  readonly answer: Answer;
  /** The person who answered; `null` if none did. */
  readonly by: UserId | null;
  readonly name: string;
  readonly at: number;
}

/** A change of the to-do list. */
export interface TodoItem extends ItemBase {
  readonly kind: "todo";
  /** The whole list from here on. */
  readonly items: readonly TodoEntry[];
  /** The entries that are new, have another state, or (`gone`) were taken off before they were done. */
  readonly changed: readonly (TodoEntry & { readonly gone: boolean })[];
  /** True if an earlier session left it in its folder, and no call changed it. */
  readonly found: boolean;
}

/** An entry of a to-do list. */
export interface TodoEntry {
  readonly text: string;
  readonly state: TodoState;
}

/** A note beside the conversation. */
export interface NoteItem extends ItemBase {
  readonly kind: "note";
  readonly note: Note;
}

/** Tokens; `cached` and `cacheWritten` are parts of `input`, `thoughts` of `output`. */
export interface Tokens {
  readonly input: number;
  readonly cached: number;
  readonly cacheWritten: number;
  readonly output: number;
  readonly thoughts: number;
}

export type { Facts } from "./facts";
export type { Note, TurnEnd } from "./note";
