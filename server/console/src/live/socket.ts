/**
 * The one WebSocket of a tab, `/api/v1/stream`: sessions are followed on it, and hints say which lists changed.
 *
 * A subscription goes on from the last event that its follower has, so nothing is missed and nothing comes twice. At
 * most 16 sessions are followed at a time, as the server allows; the one that was used longest ago waits until it is
 * used again. After each connection all watched lists are hinted at once, so they are read again.
 */

import type { ClientMessage, Live, Problem, ServerMessage, SessionEvent, SessionId, Topic } from "@/api/schema";
import { backoff } from "./backoff";
import { Link, type LinkState } from "./link";

/** The most sessions that are followed at a time; the server refuses more. */
const MOST_FOLLOWED = 16;

/** Gaps without an event between them, after which the connection itself is given up. */
const MOST_GAPS = 3;

/** The silence after which lists are read again to try a connection without a followed session, in milliseconds. */
const LISTS_SILENT_MS = 5 * 60_000;

/** The same where something happened to the network or the page. */
const LISTS_EVENT_MS = 15_000;

/** A reader of one session's feed. */
export interface Follower {
  /** The number of the last event that it has; 0 for none. */
  after(): number;
  /** Takes an event; `gap` if events before it are missing. */
  event(event: SessionEvent): "taken" | "known" | "gap";
  live(live: Live): void;
  /** It has all that the server has. */
  caughtUp(): void;
  /** It may miss something from now on, until it has caught up again. */
  behind(): void;
  /** The server does not serve the session; it is followed no more. */
  refused(problem: Problem): void;
}

/** One session that is followed. */
export interface Following {
  /** Says that it is in use; a session that waits is followed again. */
  touch(): void;
  close(): void;
}

/** A hint: these lists may be different now. `sessions` confines those about sessions and approvals, where present. */
export type ChangeListener = (topics: readonly Topic[], sessions: readonly SessionId[] | null) => void;

interface Entry {
  readonly follower: Follower;
  used: number;
  /** True while it waits, because too many others were used since. */
  waits: boolean;
  gaps: number;
  failed: number;
  retry: ReturnType<typeof setTimeout> | undefined;
}

/** The socket of a tab. */
export class LiveSocket {
  readonly #entries = new Map<SessionId, Entry>();
  readonly #watchers = new Map<ChangeListener, ReadonlySet<Topic>>();
  readonly #listeners = new Set<() => void>();
  readonly #signedOut = new Set<() => void>();
  #isSignedOut = false;
  #uses = 0;
  #watched: ReadonlySet<Topic> = new Set();

  readonly #link = new Link({
    ticket: {},
    path: "/api/v1/stream",
    query: () => ({}),
    opened: () => this.#opened(),
    text: (message) => this.#hear(message as ServerMessage),
    bytes: () => undefined,
    changed: (state) => this.#changed(state),
    signedOut: () => {
      this.#isSignedOut = true;
      this.#signedOut.forEach((listener) => listener());
    },
    refused: (problem) => this.#entries.forEach(({ follower }) => follower.refused(problem)),
    isOver: () => false,
    probe: (why) => this.#probe(why),
  });

  /** Connects. Following and watching do so by themselves, but after a sign-out only this does. */
  signedIn(): void {
    this.#isSignedOut = false;
    this.#link.start();
  }

  /** Disconnects. What is followed and watched stays so for the next sign-in. */
  signOut(): void {
    this.#isSignedOut = true;
    this.#link.stop();
  }

  /** For `useSyncExternalStore`: calls back when the state changes. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** The state of the connection; the same object until it changes. */
  readonly getSnapshot = (): LinkState => this.#link.state;

  /** The time of the last message, by this machine's clock; `null` if none came yet. */
  heardAt(): number | null {
    return this.#link.heardAt;
  }

  /** Calls back when the browser is not signed in any more: the page asks to sign in, and keeps what was typed. */
  onSignedOut(listener: () => void): () => void {
    this.#signedOut.add(listener);
    return () => this.#signedOut.delete(listener);
  }

  /**
   * Calls back when one of these lists may be different, and once for all of them after each connection. Register all
   * lists of the page once, where it is made: a list that is new to the socket has the others read again too.
   */
  onChanged(topics: readonly Topic[], listener: ChangeListener): () => void {
    if (!this.#isSignedOut) this.#link.start();
    // Each call is a registration of its own, also with the same function.
    const own: ChangeListener = (changed, sessions) => listener(changed, sessions);
    this.#watchers.set(own, new Set(topics));
    this.#watch();
    return () => this.#watchers.delete(own);
  }

  /** Follows a session from the last event of its follower on. A follower before it is let go. */
  follow(session: SessionId, follower: Follower): Following {
    if (!this.#isSignedOut) this.#link.start();
    this.#let(session);
    const entry: Entry = { follower, used: 0, waits: true, gaps: 0, failed: 0, retry: undefined };
    this.#entries.set(session, entry);
    this.#touch(session, entry);
    return {
      touch: () => this.#touch(session, entry),
      close: () => {
        if (this.#entries.get(session) === entry) this.#let(session);
      },
    };
  }

  #opened(): void {
    this.#watched = new Set();
    this.#watch();
    for (const [session, entry] of this.#entries) {
      entry.gaps = 0;
      if (!entry.waits) this.#ask(session, entry);
    }
  }

  #hear(message: ServerMessage): void {
    switch (message.type) {
      case "event": {
        const entry = this.#entries.get(message.session);
        const taken = entry?.follower.event(message.event);
        if (entry && taken === "gap") this.#gap(message.session, entry);
        else if (entry) entry.gaps = entry.failed = 0;
        return;
      }
      case "live":
        return this.#entries.get(message.session)?.follower.live(message.live);
      case "caught_up": {
        const entry = this.#entries.get(message.session);
        if (!entry) return;
        if (message.seq > entry.follower.after()) this.#gap(message.session, entry);
        else entry.follower.caughtUp();
        return;
      }
      case "changed": {
        for (const [listener, topics] of this.#watchers) {
          const changed = message.topics.filter((topic) => topics.has(topic));
          if (changed.length > 0) listener(changed, message.sessions ?? null);
        }
        return;
      }
      case "problem":
        return message.session ? this.#problem(message.session, message.problem) : console.warn(message.problem.detail);
      case "reconnect":
        return this.#link.reconnect(message.within_ms);
    }
  }

  #changed(state: LinkState): void {
    if (state.state !== "live") for (const { follower } of this.#entries.values()) follower.behind();
    this.#listeners.forEach((listener) => listener());
  }

  /** Events are missing: asks again from the last one that is there. */
  #gap(session: SessionId, entry: Entry): void {
    entry.follower.behind();
    entry.gaps++;
    if (entry.gaps > MOST_GAPS) this.#link.fail();
    else this.#ask(session, entry);
  }

  #problem(session: SessionId, problem: Problem): void {
    const entry = this.#entries.get(session);
    if (!entry) return;
    entry.follower.behind();
    if (problem.status >= 500) {
      // It passes: the store did not answer, or the server stops.
      clearTimeout(entry.retry);
      entry.retry = setTimeout(() => this.#ask(session, entry), backoff(entry.failed++, Math.random()));
      return;
    }
    this.#entries.delete(session);
    entry.follower.refused(problem);
  }

  #touch(session: SessionId, entry: Entry): void {
    if (this.#entries.get(session) !== entry) return;
    entry.used = ++this.#uses;
    if (!entry.waits) return;
    const followed = [...this.#entries].filter(([, other]) => !other.waits);
    if (followed.length >= MOST_FOLLOWED) {
      const [oldest, other] = followed.reduce((least, one) => (one[1].used < least[1].used ? one : least));
      other.waits = true;
      clearTimeout(other.retry);
      other.follower.behind();
      this.#say({ type: "unsubscribe", session: oldest });
    }
    entry.waits = false;
    this.#ask(session, entry);
  }

  #let(session: SessionId): void {
    const entry = this.#entries.get(session);
    if (!entry) return;
    clearTimeout(entry.retry);
    this.#entries.delete(session);
    if (!entry.waits) this.#say({ type: "unsubscribe", session });
  }

  #ask(session: SessionId, entry: Entry): void {
    clearTimeout(entry.retry);
    this.#say({ type: "subscribe", session, after: entry.follower.after() });
  }

  /** Watches the lists of all listeners. Each `watch` has all of them read again, so it is sent for new ones only. */
  #watch(): void {
    const topics = new Set([...this.#watchers.values()].flatMap((of) => [...of]));
    if ([...topics].every((topic) => this.#watched.has(topic))) return;
    if (this.#say({ type: "watch", topics: [...topics].sort() })) this.#watched = topics;
  }

  /**
   * Asks for something that the server answers. A session that is followed answers with `caught_up` alone, and costs
   * one look at its log. Without one, the lists answer with a hint and are read again, so that is done rarely: five
   * minutes after the last hint, or where something happened to the network or the page.
   */
  #probe(why: "silence" | "event"): boolean {
    const followed = [...this.#entries].find(([, entry]) => !entry.waits);
    if (followed) {
      this.#ask(...followed);
      return true;
    }
    const silentMs = Date.now() - (this.#link.heardAt ?? 0);
    const isTooSoon = silentMs < (why === "event" ? LISTS_EVENT_MS : LISTS_SILENT_MS);
    if (isTooSoon || this.#watched.size === 0 || document.visibilityState !== "visible") return false;
    this.#watched = new Set();
    this.#watch();
    return true;
  }

  #say(message: ClientMessage): boolean {
    return this.#link.send(JSON.stringify(message));
  }
}

/** The socket of this tab. */
export const socket = new LiveSocket();
