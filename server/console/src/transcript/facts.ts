/** The facts of a session beside its items: what works, waits and was done. See {@link Facts}. */

import type { ApprovalId, Choice, OperationId, Question, TurnId, TurnSettings, UserId } from "@/api/schema";
import type { Change } from "./changes";
import type { Place, TodoEntry, Tokens } from "./model";

/** The facts of a session as they are now. A value that did not change keeps its identity. */
export interface Facts {
  /** The title with which the session began; lists have the present one. */
  readonly title: string;
  /** The directory relative to the root of the sandbox; empty for the root. */
  readonly directory: string;
  /** The turn that works; `null` if none does. */
  readonly working: Working | null;
  /** The messages that wait for the turn that works, the first one first. */
  readonly queue: readonly QueuedMessage[];
  readonly todo: readonly TodoEntry[];
  /** The background commands that the log tells of, the oldest first; at most 64. */
  readonly tasks: readonly Task[];
  /** The questions that wait for a person, the oldest first; at most 64. */
  readonly approvals: readonly PendingApproval[];
  /** The files that calls of this session wrote or edited, in the order of their first change. */
  readonly files: readonly FileChanges[];
  /** The older changes that are not kept, because there are very many. */
  readonly filesDropped: number;
  /** The model that is asked or that answered last; empty if none is known. */
  readonly model: string;
  /** All models that answered, in the order of their first answer, each with its tokens; at most 16. */
  readonly models: readonly ModelUse[];
  /** The tokens of the last answer: `input + output` is what the model's window holds now. */
  readonly last: Tokens;
  /** The tokens of the turn that works, or worked last. */
  readonly turnUsage: Tokens;
  /** All tokens of the session. */
  readonly usage: Tokens;
  /** The settings of the last turn that was claimed. */
  readonly settings: TurnSettings | null;
  /** The runner of that turn, and where the choice comes from. */
  readonly choice: Choice | null;
  /** The place of the last call. */
  readonly place: Place | null;
  /** The last look at the place: the system, the folder and the branch. */
  readonly survey: Survey | null;
  /** The names of people that the log tells; at most 1000. */
  readonly people: Readonly<Record<UserId, string>>;
}

/** The turn that works. */
export interface Working {
  readonly turn: TurnId;
  /** The time when it began, by this machine's clock. */
  readonly since: number;
  /** The model call, from 1; 0 before the first. */
  readonly step: number;
  readonly activity: Activity;
}

/** The thing that a turn waits for, and since when by this machine's clock. */
export type Activity = { readonly since: number } & (
  | {
      /** `server`: a worker of the server; `model`: the model, which says nothing yet; `stop`: its end. */
      readonly what: "server" | "model" | "thinking" | "answering" | "stop";
    }
  /** Tool calls: the items of those that have not ended, the first one first. */
  | { readonly what: "calls"; readonly calls: readonly string[] }
  /** The answer of a person to a question about this item. */
  | { readonly what: "person"; readonly call: string | null }
  /** Something that the server says, such as the wait before another request, or a runner that is away. */
  | { readonly what: "notice"; readonly text: string }
);

/** A message that waits for its turn. */
export interface QueuedMessage {
  readonly turn: TurnId;
  /** The id of its item. */
  readonly item: string;
  /** Its beginning, on one line. */
  readonly text: string;
  readonly images: number;
  readonly by: UserId;
}

/** A command in the background. */
export interface Task {
  readonly number: number;
  readonly operation: OperationId;
  /** The id of its call's item. */
  readonly item: string;
  readonly tool: string;
  /** The command, on one line. */
  readonly about: string;
  readonly runnerName: string;
  readonly startedAt: number;
  /** The last line that it wrote, as far as this page heard; empty if none was. */
  readonly lastLine: string;
  /** Its end in words; `null` while it runs. */
  readonly ended: string | null;
}

/** A question that waits for a person. */
export interface PendingApproval {
  readonly id: ApprovalId;
  readonly turn: TurnId;
  /** The id of the item of its call; `null` if the call is not shown. */
  readonly item: string | null;
  readonly question: Question;
  readonly until: number;
  readonly askedAt: number;
}

/** The changes of one file, the oldest first. */
export interface FileChanges {
  readonly path: string;
  readonly changes: readonly Change[];
}

/** The tokens of one model. */
export interface ModelUse {
  readonly model: string;
  readonly answers: number;
  readonly usage: Tokens;
}

/** What was found at the place of a turn. */
export interface Survey {
  /** Such as `Debian GNU/Linux 12 (bookworm), x86_64`; empty if it is not known. */
  readonly system: string;
  /** The absolute path of the session's directory; empty if it is not known. */
  readonly folder: string;
  readonly branch: string | null;
}
