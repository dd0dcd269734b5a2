/** Texts that a person has not sent yet. This browser keeps each until it is sent. */
import { useSyncExternalStore } from "react";
import { keep, kept } from "@/state/storage";

/** The pause in typing after which a text is kept, in milliseconds. */
const PAUSE_MS = 300;

const texts = new Map<string, string>();
const listeners = new Set<() => void>();
const unkept = new Set<string>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** The name under which this browser keeps something of a person's session; a chat that has not begun has one, too. */
export function nameOf(what: "draft" | "edit" | "outbox", user: string, session: string | undefined): string {
  return `gantry.${what}.${user}.${session ?? "new"}`;
}

/** The unfinished message of a session. */
export function useDraft(user: string, session: string | undefined): string {
  return useUnsent(nameOf("draft", user, session));
}

/** Changes the unfinished message of a session. */
export function setDraft(user: string, session: string | undefined, text: string): void {
  setUnsent(nameOf("draft", user, session), text);
}

/** Puts a text before the unfinished message of a session. */
export function putBack(user: string, session: string | undefined, text: string): void {
  const name = nameOf("draft", user, session);
  const rest = unsent(name);
  setUnsent(name, rest === "" ? text : `${text}\n\n${rest}`);
}

/** The text of this name that is not sent yet; empty for none. */
export function useUnsent(name: string): string {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => unsent(name),
  );
}

/** Changes the text of this name; an empty one is forgotten. */
export function setUnsent(name: string, text: string): void {
  texts.set(name, text);
  unkept.add(name);
  clearTimeout(timer);
  // An empty one is forgotten at once: its message may be on its way.
  if (text === "") store();
  else timer = setTimeout(store, PAUSE_MS);
  for (const listener of listeners) listener();
}

function unsent(name: string): string {
  let text = texts.get(name);
  if (text === undefined) {
    text = kept(name) ?? "";
    texts.set(name, text);
  }
  return text;
}

function store(): void {
  for (const name of unkept) keep(name, texts.get(name) || undefined);
  unkept.clear();
}

addEventListener("pagehide", store);
