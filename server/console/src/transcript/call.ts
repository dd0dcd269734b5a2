/** A tool call from the answer that asks for it to its end. */

import type { LiveGap, LiveOutput, Part, PartToolCall, SessionEventCallEnded } from "@/api/schema";
import { MOST_UNITS, Terminal } from "./ansi";
import type { CallEnd, CallItem, Image, Output } from "./model";
import { outputOf, RecordedOutput } from "./output";
import { requestOf } from "./request";
import { line, text, wholeCharacters } from "./safe";
import { behindDamaged, byteLength } from "./utf8";

/** The most streams of one call, which are usually stdout and stderr. */
const MOST_STREAMS = 4;

/** The longest result of a tool that is no program, in UTF-16 units. */
const MOST_RESULT = 256 * 1024;

/** The most pictures of a result. */
const MOST_IMAGES = 64;

/** The tool through which a model calls tools that are not in its list. */
const USE_TOOL = "use_tool";

/** The tool and the arguments that are meant: of a call through another tool those that it names. */
function meant(call: PartToolCall): { readonly name: string; readonly arguments: string } {
  if (call.name !== USE_TOOL) {
    return call;
  }
  try {
    const written: unknown = JSON.parse(call.arguments);
    if (typeof written !== "object" || written === null || !("name" in written) || typeof written.name !== "string") {
      return call;
    }
    const given = "arguments" in written ? written.arguments : {};
    return { name: written.name, arguments: typeof given === "string" ? given : JSON.stringify(given ?? {}) };
  } catch {
    return call;
  }
}

/** The item of a call that the model asks for. */
export function asked(
  of: { readonly turn: string; readonly step: number; readonly ordinal: number; readonly at: number },
  call: PartToolCall,
): CallItem {
  const { name, arguments: toolArguments } = meant(call);
  return {
    kind: "call",
    id: callId(of),
    turn: of.turn,
    at: of.at,
    open: true,
    rewound: false,
    step: of.step,
    ordinal: of.ordinal,
    tool: line(name),
    request: requestOf(name, toolArguments),
    state: "asked",
    place: null,
    placedAt: null,
    operation: null,
    output: null,
    approval: null,
    end: null,
    result: "",
    resultLeftOut: 0,
    images: [],
    file: null,
    task: null,
    settled: null,
    agent: null,
  };
}

/** The id of a call's item. */
export function callId(of: { readonly turn: string; readonly step: number; readonly ordinal: number }): string {
  return `c:${of.turn}:${of.step}:${of.ordinal}`;
}

/** The output of a call that runs, as it is heard. */
export class LiveCall {
  /** The terminal on which all its streams write, in the order in which they arrive; most calls of a log need none. */
  #terminal: Terminal | null = null;
  /** The end of what was heard, as it came, and the number of all bytes that were. */
  #raw = "";
  #bytes = 0;
  /** True if the beginning was not heard. */
  #beganLate = false;
  readonly #ends = new Map<string, number>();

  constructor(
    /** The id of its item. */
    readonly id: string,
    readonly turn: string,
    /** True for a tool that reads on in the output of a task: its streams begin anywhere. */
    private readonly readsOn: boolean,
  ) {}

  /** Takes a piece of output at its place; true if something was new. Repeats are dropped, a jump is a gap. */
  write(live: LiveOutput): boolean {
    const have = this.#end(live.stream, live.offset);
    const end = live.offset + live.bytes;
    if (have === null || end <= have) return false;
    this.#ends.set(live.stream, end);
    this.#jump(live.offset - have);
    const piece = behindDamaged(live.text, live.bytes, have - live.offset);
    this.#screen().push(piece);
    this.#raw += piece;
    this.#bytes += end - Math.max(have, live.offset);
    if (this.#raw.length > 4 * MOST_UNITS) this.#raw = this.#raw.slice(-MOST_UNITS);
    return true;
  }

  /** Notes bytes that are not stored any more; true if some of them were not known to be missing. */
  gap(live: LiveGap): boolean {
    const have = this.#end(live.stream, live.to);
    if (have === null || live.to <= have) return false;
    this.#ends.set(live.stream, live.to);
    this.#jump(live.to - have);
    return true;
  }

  /** The output now; `null` if nothing was heard. */
  output(): Output | null {
    return this.#terminal && !this.#terminal.isEmpty ? outputOf(this.#terminal) : null;
  }

  /** The last line that was heard; empty if none was. */
  lastLine(): string {
    return this.#terminal?.lastLine() ?? "";
  }

  /** The output for good: as it was seen, where all of it was; else as its event tells it. */
  final(told: string): Output | null {
    const wasHeard = !this.#beganLate && this.#terminal?.missing === 0 && this.#bytes > 0;
    if (!wasHeard || !endsAlike(this.lastLine(), told)) return recordedOutput(told);
    return RecordedOutput.of(this.#raw, Math.max(0, this.#bytes - byteLength(this.#raw)));
  }

  /** Notes bytes that did not come. Those before the first line are simply not here. */
  #jump(bytes: number): void {
    if (bytes <= 0) return;
    const screen = this.#screen();
    if (screen.isEmpty) {
      screen.leftOut += bytes;
      this.#beganLate = true;
    } else {
      screen.gap(bytes);
    }
  }

  #screen(): Terminal {
    return (this.#terminal ??= new Terminal());
  }

  #end(stream: string, beginsAt: number): number | null {
    const known = this.#ends.get(stream);
    if (known !== undefined) return known;
    return this.#ends.size < MOST_STREAMS ? (this.readsOn ? beginsAt : 0) : null;
  }
}

/** The fields of a call's item that its end tells. */
export function ended(item: CallItem, event: SessionEventCallEnded, live: LiveCall | undefined): Partial<CallItem> {
  const told = toldBy(event);
  const isProgram = item.request.kind === "shell" || item.request.kind === "task";
  const worst = (event.findings ?? []).reduce<CallEnd["finding"]>((found, { category, score }, _, all) => {
    return all.every((other) => other.score <= score) ? category : found;
  }, null);
  const isFine = told.exit === null ? !/ended by signal /.test(told.reason) : told.exit === 0;
  const end: CallEnd = {
    outcome: event.outcome,
    exit: told.exit,
    reason: told.reason,
    failed: !(event.outcome === "background" || (event.outcome === "completed" && isFine)),
    durationMs: event.duration_ms,
    budgetMs: event.budget_ms,
    overran: event.overran,
    unplaced: event.unplaced ?? false,
    awaits: event.awaits ?? null,
    excerpt: told.excerpt || event.whole != null,
    finding: worst,
  };
  const isTask = event.outcome === "background";
  const result = isProgram ? "" : text(wholeCharacters(told.raw, MOST_RESULT));
  return {
    state: isTask ? "background" : "ended",
    open: isTask,
    end,
    task: event.task ?? null,
    images: images(event.parts).slice(0, MOST_IMAGES),
    file: event.file ? { path: line(event.file.path, 4096), changed: event.file.changed } : null,
    output: isProgram ? finalOutput(live, told.raw) : null,
    result,
    resultLeftOut: isProgram ? 0 : Math.max(0, told.raw.length - MOST_RESULT),
  };
}

/** The pictures of a message or of a result. */
export function images(parts: readonly Part[]): readonly Image[] {
  const of = parts.filter((part) => part.type === "image");
  return of.map((part) => ({ digest: part.digest, mediaType: line(part.media_type), bytes: part.bytes }));
}

/** The words of a message or of a result. */
export function words(parts: readonly Part[], between: string): string {
  const of = parts.filter((part) => part.type === "text" && part.text !== "");
  return of.map((part) => (part.type === "text" ? part.text : "")).join(between);
}

function finalOutput(live: LiveCall | undefined, raw: string): Output | null {
  return live ? live.final(raw) : recordedOutput(raw);
}

function recordedOutput(raw: string): Output | null {
  return raw.trim() === "" ? null : RecordedOutput.of(raw);
}

/** True if the last line that was seen is the last of one of the streams as recorded: its end did come. */
function endsAlike(seen: string, told: string): boolean {
  const streams = told.trimEnd().split("\n[stderr]\n");
  const lastLine = (of: string) => {
    const terminal = new Terminal();
    terminal.push(of.trimEnd().slice(-MOST_UNITS).split("\n").at(-1) ?? "");
    return terminal.lastLine();
  };
  return streams.some((stream) => lastLine(stream) === seen);
}

/** A result for the model, taken apart. */
interface Told {
  readonly exit: number | null;
  readonly reason: string;
  /** The rest, as the program or the tool wrote it. */
  readonly raw: string;
  /** True if it is a part of the result. */
  readonly excerpt: boolean;
}

/** The advice to the model below a part of a result. */
const EXCERPT = /\n?\[an excerpt of r\d+; recall [^\n]{1,200} shows more, from an offset or by a pattern\]$/;

/** The words in the last line of a command's result. */
const ENDINGS =
  /exit code |ended by signal |could not be started|it is not known what it had done| still runs, for | goes on in the background as task /;

function toldBy(event: SessionEventCallEnded): Told {
  const all = words(event.parts, "\n").trimEnd();
  const advice = EXCERPT.exec(all.slice(-400))?.[0] ?? "";
  const [said, excerpt] = [advice === "" ? all : all.slice(0, -advice.length), advice !== ""];
  const cut = said.lastIndexOf("\n");
  const last = said.slice(cut + 1);
  if (last.startsWith("[") && last.endsWith("]") && ENDINGS.test(last)) {
    const before = said.slice(0, Math.max(0, cut));
    const code = /^\[exit code (-?\d{1,10})\b/.exec(last)?.[1];
    const isPlain = code !== undefined && !last.includes(";");
    return {
      exit: code === undefined ? null : Number(code),
      reason: isPlain ? "" : line(last.slice(1, -1).split("; read on with ", 1)[0] ?? ""),
      raw: before === "[no output]" ? "" : before,
      excerpt,
    };
  }
  if (event.outcome === "completed") return { exit: null, reason: "", raw: said, excerpt };
  // The text for the model may begin with the outcome, which is shown anyway.
  const [first = "", ...rest] = said.split("\n");
  const reason = first.replace(/^(?:failed|not run|outcome unknown): /, "");
  return { exit: null, reason: line(reason), raw: rest.join("\n"), excerpt };
}
