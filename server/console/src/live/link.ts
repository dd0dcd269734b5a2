/**
 * One WebSocket that is made again until it is stopped: tickets, waits, and signs that it is dead.
 *
 * A browser answers the server's pings by itself and shows them to no page, so a page cannot see that they stay away.
 * So where nothing was heard for 30 s, or something happened to the network or the page, the owner's `probe` sends a
 * message that the server has to answer. A connection without an answer within 8 s is given up.
 */

import type { CreateStreamTicket, Problem } from "@/api/schema";
import { backoff } from "./backoff";
import { askTicket, streamUrl } from "./ticket";

/** The silence after which a connection is tried, in milliseconds. */
const SILENT_MS = 30_000;

/** A connection on which something was heard so lately is not tried, in milliseconds. */
const FRESH_MS = 2_000;

/** The longest wait for the answer to a probe, and for a connection to open, in milliseconds. */
const ANSWER_MS = 8_000;

/** A connection that lasted so long was sound, in milliseconds: the next wait is short again. */
const SOUND_MS = 5_000;

/** The state of a connection, for people. */
export type LinkState =
  /** It was not asked for, or the browser is not signed in. */
  | { readonly state: "idle" }
  /** It is made for the first time, or moves to another server as it was told to. */
  | { readonly state: "connecting" }
  | { readonly state: "live" }
  /** It is lost; times are by this machine's clock. */
  | {
      readonly state: "lost";
      readonly since: number;
      /** The time of the last message: what the page shows is as of then. `null` if none ever came. */
      readonly asOf: number | null;
      /** The time of the next attempt; `null` while one is under way. */
      readonly nextAttempt: number | null;
    };

/** What a link is for. */
export interface LinkOwner {
  readonly ticket: CreateStreamTicket;
  readonly path: string;
  /** The query beside the ticket, asked for at each attempt. */
  query(): Readonly<Record<string, string>>;
  opened(): void;
  text(message: unknown): void;
  bytes(message: ArrayBuffer): void;
  changed(state: LinkState): void;
  signedOut(): void;
  refused(problem: Problem): void;
  /** True if the server has said its last word, so that a close with this code (RFC 6455, 7.4) is the end. */
  isOver(code: number): boolean;
  /**
   * Sends something that the server answers; false if there is nothing of that kind. `silence`: nothing was heard for
   * a while. `event`: something happened to the network or the page.
   */
  probe(why: "silence" | "event"): boolean;
}

/** A WebSocket that is made again. */
export class Link {
  #state: LinkState = { state: "idle" };
  #socket: WebSocket | null = null;
  #attempt: AbortController | null = null;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #silence: ReturnType<typeof setTimeout> | undefined;
  #answer: ReturnType<typeof setTimeout> | undefined;
  #failed = 0;
  #openedAt = 0;
  #heardAt: number | null = null;
  /** The time over which the server asked to spread the next connection. */
  #within: number | null = null;

  constructor(private readonly owner: LinkOwner) {}

  /** The state now; the same object until it changes. */
  get state(): LinkState {
    return this.#state;
  }

  /** The time of the last message. */
  get heardAt(): number | null {
    return this.#heardAt;
  }

  /** The bytes that were sent and that the browser still holds. */
  get buffered(): number {
    return this.#socket?.bufferedAmount ?? 0;
  }

  start(): void {
    if (this.#state.state !== "idle") return;
    window.addEventListener("online", this.#look);
    window.addEventListener("offline", this.#look);
    window.addEventListener("pageshow", this.#look);
    document.addEventListener("visibilitychange", this.#look);
    this.#failed = 0;
    this.#become({ state: "connecting" });
    void this.#connect();
  }

  stop(): void {
    window.removeEventListener("online", this.#look);
    window.removeEventListener("offline", this.#look);
    window.removeEventListener("pageshow", this.#look);
    document.removeEventListener("visibilitychange", this.#look);
    this.#drop();
    this.#become({ state: "idle" });
  }

  /** Sends a message; false if there is no connection. */
  send(message: string | Uint8Array<ArrayBuffer>): boolean {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(message);
    return true;
  }

  /** Notes that the server closes the connection, and wants the next one within a random part of this time. */
  reconnect(withinMs: number): void {
    this.#within = withinMs;
  }

  /** Waits for a message of the server, which was sent something that it answers. */
  expectAnswer(): void {
    if (this.#answer !== undefined || this.#state.state !== "live") return;
    const asked = this.#heardAt;
    this.#answer = setTimeout(() => {
      this.#answer = undefined;
      if (this.#heardAt === asked) this.fail();
    }, ANSWER_MS);
  }

  /** Closes the connection and makes none until {@link Link.resume}: its owner has to catch up first. */
  pause(): void {
    if (this.#state.state === "idle") return;
    this.#drop();
    this.#become({ state: "connecting" });
  }

  /** Connects again after a pause. */
  resume(): void {
    if (this.#state.state !== "idle") void this.#connect();
  }

  /** Gives the connection up, and makes another. A close handshake with a server that is gone would take minutes. */
  fail(): void {
    if (this.#state.state !== "live") return;
    this.#drop();
    this.#lost();
  }

  readonly #look = (event: Event): void => {
    if (this.#state.state === "live") {
      // The connection may hold, where the server is on this machine: then the next one is made at once.
      if (event.type === "offline") return this.fail();
      if (Date.now() - (this.#heardAt ?? 0) > FRESH_MS) this.#probe("event");
      return;
    }
    const isWaiting = this.#state.state === "lost" && this.#state.nextAttempt !== null;
    if (isWaiting && document.visibilityState === "visible" && navigator.onLine) void this.#connect();
  };

  async #connect(): Promise<void> {
    this.#drop();
    const attempt = new AbortController();
    this.#attempt = attempt;
    if (this.#state.state === "lost") this.#become({ ...this.#state, nextAttempt: null });
    const ticketed = await askTicket(this.owner.ticket, attempt.signal);
    if (attempt.signal.aborted) return;
    if (ticketed.ok) return this.#open(streamUrl(this.owner.path, { ...this.owner.query(), ticket: ticketed.ticket }));
    if (ticketed.why === "unreachable") return this.#lost();
    this.stop();
    if (ticketed.why === "signed_out") this.owner.signedOut();
    else this.owner.refused(ticketed.problem);
  }

  #open(url: string): void {
    const socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    const tooLong = setTimeout(() => {
      this.#drop();
      this.#lost();
    }, ANSWER_MS);
    this.#attempt?.signal.addEventListener("abort", () => clearTimeout(tooLong));
    socket.onopen = () => {
      clearTimeout(tooLong);
      this.#openedAt = Date.now();
      this.#within = null;
      this.#heard();
      this.#become({ state: "live" });
      this.#listen(SILENT_MS);
      this.owner.opened();
    };
    socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) => {
      this.#heard();
      if (typeof data !== "string") return this.owner.bytes(data);
      const message = parsed(data);
      if (message !== undefined) this.owner.text(message);
    };
    socket.onclose = ({ code }) => {
      this.#drop();
      if (this.owner.isOver(code)) this.stop();
      else this.#lost();
    };
  }

  #heard(): void {
    this.#heardAt = Date.now();
    clearTimeout(this.#answer);
    this.#answer = undefined;
  }

  /** Looks after a time if something was heard; one timer, however much is heard. */
  #listen(ms: number): void {
    this.#silence = setTimeout(() => {
      const rest = SILENT_MS - (Date.now() - (this.#heardAt ?? 0));
      if (rest <= 0) this.#probe("silence");
      this.#listen(rest > 0 ? rest : SILENT_MS);
    }, ms);
  }

  #probe(why: "silence" | "event"): void {
    if (this.owner.probe(why)) this.expectAnswer();
  }

  /** Lets go of the connection, the attempt and all timers. */
  #drop(): void {
    for (const timer of [this.#retry, this.#silence, this.#answer]) clearTimeout(timer);
    this.#answer = undefined;
    this.#attempt?.abort();
    const socket = this.#socket;
    this.#socket = null;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }

  /** Waits before the next attempt. A revoked credential shows when the next ticket is asked for. */
  #lost(): void {
    const within = this.#within;
    this.#within = null;
    if (this.#state.state === "live" && Date.now() - this.#openedAt > SOUND_MS) this.#failed = 0;
    const wait = within === null ? backoff(this.#failed++, Math.random()) : Math.round(within * Math.random());
    this.#retry = setTimeout(() => void this.#connect(), wait);
    if (within !== null) return this.#become({ state: "connecting" });
    const before = this.#state;
    const [since, asOf] = before.state === "lost" ? [before.since, before.asOf] : [Date.now(), this.#heardAt];
    this.#become({ state: "lost", since, asOf, nextAttempt: Date.now() + wait });
  }

  #become(state: LinkState): void {
    this.#state = state;
    this.owner.changed(state);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
