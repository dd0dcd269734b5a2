/** A session's conversation as a store for React's `useSyncExternalStore`. */

import type { Problem, SessionId } from "@/api/schema";
import type { Facts } from "./facts";
import type { Item } from "./model";

/** The state of a conversation at one moment; it never changes. */
export interface Snapshot {
  /**
   * `loading`: the log is being read for the first time, and there are no items yet. `ready`: all of it was read once.
   * `refused`: the server does not serve it, see {@link Snapshot.problem}.
   */
  readonly status: "loading" | "ready" | "refused";
  /** The items, in order; messages that wait for their turn stand last. */
  readonly items: readonly Item[];
  readonly facts: Facts;
  /** The number of the last event that was taken; it rises while the log loads. */
  readonly seq: number;
  /** True if all that the server has was taken; false while the connection is made again. */
  readonly caughtUp: boolean;
  /**
   * The server's time minus that of this machine, in milliseconds, as live events tell; 0 where that is less than 2 s.
   * A time of an item is `at - skewMs` by this machine's clock.
   */
  readonly skewMs: number;
  /** The reason why the server does not serve the session. */
  readonly problem: Problem | null;
}

/** The conversation of one session, kept up to date while it is kept at all. */
export interface Transcript {
  readonly session: SessionId;
  /** Calls back after each change, at most once per frame; returns the end of that. */
  subscribe(listener: () => void): () => void;
  /** The present snapshot; the same object until something changes. */
  getSnapshot(): Snapshot;
  /** The item with this id. */
  item(id: string): Item | undefined;
  /** Asks for a refused session again. */
  retry(): void;
}
