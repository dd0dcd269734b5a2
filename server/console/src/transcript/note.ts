/** The notes beside a conversation. */

import type { ApprovalId, HookDecision, OperationId, SessionId, StopReason, TurnOutcome, UserId } from "@/api/schema";
import type { Answered, Tokens } from "./model";

/** The notes. Their words are the page's, but for texts that the server made. */
export type Note =
  /** Another model answers than before, or than was chosen. */
  | { readonly type: "model_changed"; readonly model: string; readonly account: string; readonly before: string | null }
  /** The model was sent less of the conversation, in one of three ways. */
  | { readonly type: "left_out"; readonly results: number; readonly gone: number; readonly shortened: number }
  | { readonly type: "masked"; readonly tokens: number }
  | {
      readonly type: "compacted";
      readonly before: number;
      readonly after: number;
      readonly because: "near_window" | "refused" | "asked";
      /** The text that stands in for the beginning of the conversation, Markdown. */
      readonly carried: string;
      readonly summary: string;
      /** The reason why the model wrote no summary. */
      readonly noSummary: string | null;
    }
  /** A person went back to before this message (its beginning, on one line). */
  | { readonly type: "rewound"; readonly by: UserId; readonly before: string; readonly turns: number }
  /** Something of the moment that the server says, such as a retry; it goes away once the turn goes on. */
  | { readonly type: "notice"; readonly text: string }
  /** The session works for a call of another one. */
  | { readonly type: "agent_briefed"; readonly name: string; readonly task: string; readonly parent: SessionId }
  /** An agent below the session asks people. */
  | { readonly type: "agent_asks"; readonly name: string; readonly session: SessionId; readonly approval: string }
  /** A call has begun another conversation of the user. */
  | { readonly type: "chat_started"; readonly title: string; readonly session: SessionId }
  /** A call of another session has begun this one. */
  | { readonly type: "chat_origin"; readonly parent: SessionId }
  /** The agent has a git worktree of its own, or has left its changes there. */
  | { readonly type: "worktree"; readonly state: "made" | "kept"; readonly path: string; readonly branch: string }
  /** A person asked to stop the turn. */
  | { readonly type: "cancel"; readonly by: UserId; readonly why: StopReason | null }
  | TurnEnd
  /** The turn was taken up again, because its worker was lost. */
  | { readonly type: "resumed" }
  /** The instructions that were found at the place, and words on files that could not be read. */
  | {
      readonly type: "instructions";
      readonly files: readonly { readonly path: string; readonly cut: boolean }[] | null;
      readonly unread: readonly string[];
    }
  /** The numbers of extensions that count, the files that wait for trust, and words on what is not used. */
  | {
      readonly type: "extensions";
      readonly skills: number;
      readonly agents: number;
      readonly hooks: number;
      readonly servers: number;
      readonly plugins: number;
      readonly untrusted: readonly string[];
      readonly unread: readonly string[];
    }
  /** A hook decided something, failed, or says something. */
  | {
      readonly type: "hook";
      readonly action: string;
      readonly decision: HookDecision | null;
      readonly why: string;
      readonly failed: boolean;
    }
  /** The tool servers: the number of their tools, or the reason why there are none, and words on what is left out. */
  | {
      readonly type: "tool_servers";
      readonly servers: readonly {
        readonly name: string;
        readonly tools: number;
        readonly failed: string | null;
        readonly leftOut: readonly string[];
      }[];
    }
  /** The folder has rules for agents that do not count until a person trusts them. */
  | { readonly type: "untrusted_rules"; readonly path: string }
  /** The operator's text at the beginning of the system prompt is another from here on. */
  | { readonly type: "prompt_changed" }
  /** The truth about an operation came after its call had ended; `task` is its number if it was a task. */
  | {
      readonly type: "settled";
      readonly task: number | null;
      readonly operation: OperationId;
      readonly summary: string;
    }
  /** An answer to a question whose call is not shown. */
  | { readonly type: "answered"; readonly approval: ApprovalId; readonly answered: Answered };

/** The end of a turn. */
export interface TurnEnd {
  readonly type: "turn_ended";
  readonly outcome: TurnOutcome;
  /** The reason where it did not complete, for people; empty if there is none. */
  readonly reason: string;
  /** From the claim of the turn to its end, in milliseconds. */
  readonly tookMs: number;
  readonly usage: Tokens;
  /** The answers of the model. */
  readonly steps: number;
  readonly calls: number;
}
