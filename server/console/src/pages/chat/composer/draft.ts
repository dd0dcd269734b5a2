/** Unfinished messages, one for each session. This browser keeps each until its message is sent. */
import { useSyncExternalStore } from "react";
import { keep, kept } from "@/state/storage";

/** The pause in typing after which a draft is kept, in milliseconds. */
const PAUSE_MS = 300;

const drafts = new Map<string, string>();
const listeners = new Set<() => void>();
const unkept = new Set<string>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** The name under which this browser keeps something of a person's session; a chat that has not begun has one, too. */
export function nameOf(what: "draft" | "outbox", user: string, session: string | undefined): string {
  return `gantry.${what}.${user}.${session ?? "new"}`;
}

/** The unfinished message of a session. */
export function useDraft(user: string, session: string | undefined): string {
  const name = nameOf("draft", user, session);
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => draftOf(name),
  );
}

/** Changes the unfinished message of a session. */
export function setDraft(user: string, session: string | undefined, text: string): void {
  const name = nameOf("draft", user, session);
  drafts.set(name, text);
  unkept.add(name);
  clearTimeout(timer);
  // An empty one is forgotten at once: its message may be on its way.
  if (text === "") store();
  else timer = setTimeout(store, PAUSE_MS);
  for (const listener of listeners) listener();
}

/** Puts a text before the unfinished message of a session. */
export function putBack(user: string, session: string | undefined, text: string): void {
  const rest = draftOf(nameOf("draft", user, session));
  setDraft(user, session, rest === "" ? text : `${text}\n\n${rest}`);
}

function draftOf(name: string): string {
  let text = drafts.get(name);
  if (text === undefined) {
    text = kept(name) ?? "";
    drafts.set(name, text);
  }
  return text;
}

function store(): void {
  for (const name of unkept) keep(name, drafts.get(name) || undefined);
  unkept.clear();
}

addEventListener("pagehide", store);
