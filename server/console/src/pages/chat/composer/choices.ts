/** What the person chose for a chat that has not begun. It lives as long as the page. */
import { useSyncExternalStore } from "react";
import { changeSettings } from "@/api/settings";
import { idempotencyKey } from "@/api/client";
import { createSession } from "@/api/sessions";
import type { Mode, Session } from "@/api/schema";

/** The choices for a new chat; an absent one is the person's usual one. */
export interface Choices {
  /** A runner's name, alone or with `/WORKSPACE`. */
  runner?: string | undefined;
  /** The folder, relative to the workspace. */
  directory?: string | undefined;
  model?: string | undefined;
  mode?: Mode | undefined;
}

let choices: Choices = {};
/** Of the next session: the same until it has begun, so that a request without an answer begins one session. */
let key = idempotencyKey();
const listeners = new Set<() => void>();

function set(changed: Choices): void {
  choices = changed;
  key = idempotencyKey();
  for (const listener of listeners) listener();
}

/** The choices for the next new chat. */
export function useChoices(): Choices {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => choices,
  );
}

/** Changes some of the choices. */
export function choose(changed: Choices): void {
  set({ ...choices, ...changed });
}

/** Begins a chat with these choices, and forgets them. */
export async function begin(): Promise<Session> {
  const { mode, ...rest } = choices;
  const chosen = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined && value !== ""));
  const session = await createSession(chosen, key);
  if (mode) await changeSettings({ layer: "session", session: session.id, values: { mode } });
  set({});
  return session;
}
