/** The changes of files in a session: what its edits and writes did. */

import type { FileChanges } from "./facts";
import type { CallItem } from "./model";
import { changedNothing, editedLine, madeFile } from "./results";

/** One change of a file by a call. */
export type Change = {
  /** The id of the call's item. */
  readonly item: string;
  readonly at: number;
  /** True if its turn was gone back from; the file may or may not have been put back. */
  readonly rewound: boolean;
} & (
  | {
      readonly deed: "edited";
      readonly old: string;
      readonly new: string;
      /** True if every occurrence was meant. */
      readonly every: boolean;
      /** The line of the file at which the text began, from 1; `null` if it is not known. */
      readonly line: number | null;
    }
  | {
      readonly deed: "written";
      readonly content: string;
      /** True if there was no such file before. */
      readonly made: boolean;
    }
);

/** The most changes that are kept. */
const MOST_CHANGES = 2000;

/** The most text of changes that is kept, in UTF-16 units. */
const MOST_UNITS = 8 << 20;

/** The changes of a session; the oldest are dropped at a bound. */
export class Changes {
  /** The older changes that are not kept. */
  dropped = 0;
  #changes: { path: string; change: Change }[] = [];
  #units = 0;
  #files: readonly FileChanges[] | null = [];

  /** Takes the change of a call that ended, if it made one. */
  take(call: CallItem): void {
    if (call.end?.outcome !== "completed") return;
    const change = changeOf(call);
    if (!change) return;
    this.#files = null;
    this.#changes.push({ path: normal(call.file?.path ?? pathOf(call)), change });
    this.#units += size(change);
    while (this.#changes.length > MOST_CHANGES || (this.#units > MOST_UNITS && this.#changes.length > 1)) {
      const gone = this.#changes.shift();
      if (gone) this.#units -= size(gone.change);
      this.dropped++;
    }
  }

  /** Marks the changes of calls in these items. */
  rewind(items: ReadonlySet<string>): void {
    for (const entry of this.#changes) {
      if (items.has(entry.change.item) && !entry.change.rewound) {
        entry.change = { ...entry.change, rewound: true };
        this.#files = null;
      }
    }
  }

  /** The changes by file; the same array until one is added. */
  files(): readonly FileChanges[] {
    if (this.#files) return this.#files;
    const byPath = new Map<string, Change[]>();
    for (const { path, change } of this.#changes) {
      const known = byPath.get(path);
      if (known) known.push(change);
      else byPath.set(path, [change]);
    }
    this.#files = [...byPath].map(([path, changes]) => ({ path, changes }));
    return this.#files;
  }
}

function changeOf(call: CallItem): Change | null {
  const common = { item: call.id, at: call.at, rewound: false };
  const { request } = call;
  if (request.kind === "edit") return { ...common, deed: "edited", old: request.old, new: request.new, every: request.every, line: editedLine(call) };
  if (request.kind !== "write" || changedNothing(call)) return null;
  return { ...common, deed: "written", content: request.content, made: madeFile(call) };
}

function pathOf(call: CallItem): string {
  return "path" in call.request ? call.request.path : "";
}

function normal(path: string): string {
  return path.startsWith("./") ? path.slice(2) : path;
}

function size(change: Change): number {
  return change.deed === "edited" ? change.old.length + change.new.length : change.content.length;
}
