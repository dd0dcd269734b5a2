/**
 * The conversations that this tab keeps: each is a fold that follows its session, and a store for React.
 *
 * The last ones stay and go on being followed, so that switching back shows them at once and as they are now.
 */

import type { Live, Problem, SessionEvent, SessionId } from "@/api/schema";
import { type Follower, type Following, type LiveSocket, socket } from "@/live/socket";
import { Fold } from "./fold";
import { Frames } from "./frames";
import type { Item } from "./model";
import type { Snapshot, Transcript } from "./snapshot";

/** The most conversations that are kept beside those that are shown. */
const MOST_KEPT = 6;

/** The interval at which the progress of a long log is told while it loads, in milliseconds. */
const PROGRESS_MS = 250;

const NOTHING: readonly Item[] = [];

/** The conversations of a tab. */
export class Transcripts {
  /** The one that was used last stands last. */
  readonly #kept = new Map<SessionId, KeptTranscript>();

  constructor(private readonly socket: Pick<LiveSocket, "follow">) {}

  /** The conversation of a session, which is followed from now on. */
  of(session: SessionId): Transcript {
    const known = this.#kept.get(session) ?? new KeptTranscript(session, this.socket);
    this.#kept.delete(session);
    this.#kept.set(session, known);
    known.touch();
    const idle = [...this.#kept.values()].filter((kept) => kept !== known && !kept.isShown);
    for (const old of idle.slice(0, Math.max(0, idle.length - MOST_KEPT))) this.#forget(old.session);
    return known;
  }

  #forget(session: SessionId): void {
    this.#kept.get(session)?.close();
    this.#kept.delete(session);
  }
}

/** The conversations of this tab. */
const transcripts = new Transcripts(socket);

/** The conversation of a session, followed over the socket of this tab. */
export function transcriptOf(session: SessionId): Transcript {
  return transcripts.of(session);
}

class KeptTranscript implements Transcript, Follower {
  readonly #fold = new Fold();
  #snapshot: Snapshot;
  #status: Snapshot["status"] = "loading";
  #problem: Problem | null = null;
  #caughtUp = false;
  #toldAt = 0;
  #following: Following;
  readonly #listeners = new Set<() => void>();
  readonly #frames = new Frames(() => this.#publish());

  constructor(
    readonly session: SessionId,
    private readonly socket: Pick<LiveSocket, "follow">,
  ) {
    this.#snapshot = this.#made();
    this.#following = socket.follow(session, this);
  }

  /** True while a page shows it. */
  get isShown(): boolean {
    return this.#listeners.size > 0;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    this.touch();
    return () => this.#listeners.delete(listener);
  };

  readonly getSnapshot = (): Snapshot => this.#snapshot;

  item(id: string): Item | undefined {
    return this.#fold.item(id);
  }

  retry(): void {
    if (this.#status !== "refused") return;
    this.#problem = null;
    this.#status = this.#fold.seq > 0 ? "ready" : "loading";
    this.#following = this.socket.follow(this.session, this);
    this.#frames.ask();
  }

  /** Says that it is used: it is followed, if it was not. */
  touch(): void {
    this.#following.touch();
  }

  close(): void {
    this.#following.close();
    this.#frames.stop();
  }

  after(): number {
    return this.#fold.seq;
  }

  event(event: SessionEvent): "taken" | "known" | "gap" {
    const taken = this.#fold.event(event);
    if (taken === "taken") this.#changed();
    return taken;
  }

  live(live: Live): void {
    this.#fold.live(live);
    this.#changed();
  }

  caughtUp(): void {
    this.#fold.caughtUp();
    this.#caughtUp = true;
    this.#status = "ready";
    this.#frames.ask();
  }

  behind(): void {
    if (!this.#caughtUp) return;
    this.#fold.behind();
    this.#caughtUp = false;
    this.#frames.ask();
  }

  refused(problem: Problem): void {
    this.#problem = problem;
    this.#status = "refused";
    this.#caughtUp = false;
    this.#frames.ask();
  }

  /** Asks for a snapshot. While a log loads for the first time, only its progress is told, now and then. */
  #changed(): void {
    if (this.#status === "loading" && Date.now() - this.#toldAt < PROGRESS_MS) return;
    this.#toldAt = Date.now();
    this.#frames.ask();
  }

  #publish(): void {
    const next = this.#made();
    const before = this.#snapshot;
    const keys = Object.keys(next) as (keyof Snapshot)[];
    if (keys.every((key) => next[key] === before[key])) return;
    this.#snapshot = next;
    this.#listeners.forEach((listener) => listener());
  }

  #made(): Snapshot {
    const fold = this.#fold;
    return {
      status: this.#status,
      items: this.#status === "loading" ? NOTHING : fold.items(),
      facts: fold.facts(),
      seq: fold.seq,
      caughtUp: this.#caughtUp,
      skewMs: fold.skewMs,
      problem: this.#problem,
    };
  }
}
