import { useSyncExternalStore } from "react";
import type { Shown } from "@/api/schema";

/** The answer to a command, which stands above the input until the person closes it. */
export interface CommandAnswer {
  line: string;
  shown: readonly Shown[];
}

/** By session: a command may lead to another one, and its answer goes along. */
const answers = new Map<string, CommandAnswer>();
const listeners = new Set<() => void>();

/** Shows the answer to a command in a session; undefined takes it away. */
export function showAnswer(session: string, answer: CommandAnswer | undefined): void {
  if (answer && answer.shown.length > 0) answers.set(session, answer);
  else answers.delete(session);
  for (const listener of listeners) listener();
}

/** The answer that a session shows. */
export function useAnswer(session: string | undefined): CommandAnswer | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => (session ? answers.get(session) : undefined),
  );
}
