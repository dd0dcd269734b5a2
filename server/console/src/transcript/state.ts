/** The state of a conversation while its feed is folded: what the items and facts are made of. */

import type { LiveOutput, TurnId, UserId } from "@/api/schema";
import type { LiveAnswer } from "./answer";
import type { LiveCall } from "./call";
import { Changes } from "./changes";
import type { Activity, Facts, Task } from "./facts";
import { Items } from "./items";
import type { CallItem, Tokens } from "./model";
import { Models, NONE } from "./models";
import { line } from "./safe";

/** The most turns that are remembered as ended, and the most that are known at a time. */
const MOST_TURNS = 64;

/** The most people whose names are known. */
const MOST_PEOPLE = 1000;

/** The most background commands that are known at a time. Those that ended first are forgotten first. */
const MOST_TASKS = 64;

/** What is summed up of a turn for its end. */
interface Turn {
  begun: number;
  claimed: boolean;
  usage: Tokens;
  steps: number;
  calls: number;
}

/** Everything that a fold knows. */
export class State {
  readonly items = new Items();
  readonly changes = new Changes();
  readonly models = new Models();
  readonly facts: { -readonly [K in keyof Facts]: Facts[K] } = {
    title: "",
    directory: "",
    working: null,
    queue: [],
    todo: [],
    tasks: [],
    approvals: [],
    files: [],
    filesDropped: 0,
    model: "",
    models: [],
    last: NONE,
    turnUsage: NONE,
    usage: NONE,
    settings: null,
    choice: null,
    place: null,
    survey: null,
    people: {},
  };
  /** The answer that the model gives now. */
  answer: LiveAnswer | null = null;
  /** The calls that have not ended, and those that go on as tasks, by the ids of their items. */
  readonly calls = new Map<string, LiveCall>();
  /** The items of operations whose truth may come later. */
  readonly operations = new Map<string, string>();
  /** The last recorded answer of the turns that work. */
  readonly recorded = new Map<TurnId, number>();
  readonly turns = new Map<TurnId, Turn>();
  /** The operation that looks at the place of the turn; it is not shown. */
  look: string | null = null;
  /** The id of the note of the moment, such as a retry; it goes away once the turn goes on. */
  notice: string | null = null;
  toldOfRules = false;
  /** The ids of messages that steered a turn which ended before the model was sent them. */
  readonly leftSteers: string[] = [];
  hasEndedTurn = false;
  /** True once the log was read to its end: what comes now happens now. */
  caughtUp = false;
  /** The server's time minus this machine's, as the newest live event tells. */
  skewMs = 0;
  /** The time of the last event, by the server's clock. */
  at = 0;
  /** The items whose output or text was changed by live pieces since the last snapshot. */
  readonly stale = new Set<string>();
  #given: Facts | null = null;
  readonly #ended = new Set<TurnId>();

  constructor(private readonly clock: () => number) {}

  /** Changes facts. Those that were given away stay as they are: they are copied once for each snapshot. */
  patch(change: Partial<Facts>): void {
    Object.assign(this.facts, change);
    this.#given = null;
  }

  /** The facts for a snapshot; the same object until one changes. */
  given(): Facts {
    return (this.#given ??= { ...this.facts });
  }

  /** The time of what is told now, by this machine's clock. */
  now(): number {
    const now = this.clock();
    return this.caughtUp ? now : Math.min(now, this.at - this.skewMs);
  }

  /** The time of what is told now, by the server's clock. */
  serverTime(): number {
    return this.caughtUp ? Math.max(this.at, this.clock() + this.skewMs) : this.at;
  }

  person(user: UserId, name: string): void {
    const { people } = this.facts;
    const known = line(name);
    if (known === "" || people[user] === known || Object.keys(people).length >= MOST_PEOPLE) return;
    this.patch({ people: { ...people, [user]: known } });
  }

  /** A turn begins to work. */
  works(turn: TurnId, what: "server" | "model"): void {
    const since = this.now();
    this.patch({ turnUsage: NONE, working: { turn, since, step: 0, activity: { what, since } } });
  }

  /** Notes what the turn waits for, if it is the one that works. A turn that was asked to stop waits for its end. */
  waits(turn: TurnId, what: ActivityKind): void {
    const { working } = this.facts;
    if (working?.turn !== turn || working.activity.what === "stop" || isSame(working.activity, what)) return;
    this.patch({ working: { ...working, activity: { ...what, since: this.now() } } });
  }

  /** Notes which calls the turn waits for, or the model where all have ended. */
  waitsForCalls(turn: TurnId): void {
    const open = [...this.calls.values()].filter((call) => call.turn === turn).map((call) => this.items.get(call.id));
    const calls = open.filter((item): item is CallItem => item?.kind === "call" && item.state !== "background");
    const asked = calls.find((call) => call.state === "approval");
    if (asked) this.waits(turn, { what: "person", call: asked.id });
    else if (calls.length > 0) this.waits(turn, { what: "calls", calls: calls.map((call) => call.id) });
    else this.waits(turn, { what: "model" });
  }

  step(turn: TurnId, step: number): void {
    const { working } = this.facts;
    if (working?.turn === turn && step > working.step) this.patch({ working: { ...working, step } });
  }

  turn(turn: TurnId): Turn {
    const known = this.turns.get(turn);
    if (known) return known;
    forgetFirst(this.turns, MOST_TURNS);
    const fresh: Turn = { begun: this.at, claimed: false, usage: NONE, steps: 0, calls: 0 };
    this.turns.set(turn, fresh);
    return fresh;
  }

  hasEnded(turn: TurnId): boolean {
    return this.#ended.has(turn);
  }

  /** The turn is over: nothing of it that comes now counts. */
  endTurn(turn: TurnId): void {
    this.turns.delete(turn);
    this.recorded.delete(turn);
    forgetFirst(this.#ended, MOST_TURNS);
    this.#ended.add(turn);
  }

  addTask(task: Task): void {
    const { tasks } = this.facts;
    if (tasks.some((known) => known.operation === task.operation)) return;
    const ended = tasks.findIndex((known) => known.ended !== null);
    const room = tasks.length < MOST_TASKS ? tasks : tasks.filter((_, at) => at !== Math.max(0, ended));
    this.patch({ tasks: [...room, task] });
  }

  /** Changes the task of this operation; returns it as it was. */
  task(operation: string, change: Partial<Task>): Task | undefined {
    const { tasks } = this.facts;
    const known = tasks.find((task) => task.operation === operation);
    if (known) this.patch({ tasks: tasks.map((task) => (task === known ? { ...task, ...change } : task)) });
    return known;
  }

  /** Takes the live answer away, and its item with it, if nothing of it counts. */
  voidAnswer(): void {
    if (this.answer) this.items.remove(this.answer.id);
    this.answer = null;
  }

  /** Closes the live answer as it is. */
  leaveAnswer(): void {
    const { answer } = this;
    this.answer = null;
    const item = answer ? this.items.get(answer.id) : undefined;
    if (answer && item?.kind === "answer") this.items.replace({ ...item, open: false, parts: answer.parts(false) });
  }

  /** Takes the note of the moment away. */
  dropNotice(): void {
    if (this.notice) this.items.remove(this.notice);
    this.notice = null;
  }

  /** The call of this piece of output; one that goes on as a task may have ended. */
  callOf(live: Pick<LiveOutput, "turn" | "step" | "ordinal">): LiveCall | undefined {
    return this.calls.get(`c:${live.turn}:${live.step}:${live.ordinal}`);
  }
}

/** Makes room for one more entry of a map or set with this bound. */
export function forgetFirst(of: Map<string, unknown> | Set<string>, most: number): void {
  if (of.size < most) return;
  const first = of.keys().next();
  if (!first.done) of.delete(first.value);
}

/** An activity without its beginning. */
type ActivityKind = Activity extends infer A ? (A extends Activity ? Omit<A, "since"> : never) : never;

function isSame(one: Activity, other: ActivityKind): boolean {
  if (one.what !== other.what) return false;
  if (one.what === "calls" && other.what === "calls") return one.calls.join() === other.calls.join();
  if (one.what === "person" && other.what === "person") return one.call === other.call;
  if (one.what === "notice" && other.what === "notice") return one.text === other.text;
  return true;
}
