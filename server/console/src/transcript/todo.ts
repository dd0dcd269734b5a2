/** The to-do list of a session, and its changes. */

import type { SessionEventTodoChanged } from "@/api/schema";
import type { TodoEntry, TodoItem } from "./model";
import { line } from "./safe";

/** The most entries that are shown. */
const MOST_ENTRIES = 200;

/** The item for a change of the list. */
export function todoItem(event: SessionEventTodoChanged, at: number, before: readonly TodoEntry[]): TodoItem {
  const items = event.items.slice(0, MOST_ENTRIES).map(({ text, state }) => ({ text: line(text), state }));
  const isKnown = (entry: TodoEntry) => before.some((old) => old.text === entry.text && old.state === entry.state);
  const isGone = (old: TodoEntry) => old.state !== "done" && !items.some((entry) => entry.text === old.text);
  return {
    kind: "todo",
    id: `t:${event.seq}`,
    turn: event.turn,
    at,
    open: false,
    rewound: false,
    items,
    changed: [
      ...items.filter((entry) => !isKnown(entry)).map((entry) => ({ ...entry, gone: false })),
      ...before.filter(isGone).map((entry) => ({ ...entry, gone: true })),
    ],
    found: event.found ?? false,
  };
}
