import { useSyncExternalStore } from "react";
import { keep, kept } from "@/state/storage";

/** A terminal that the person opened in this browser. */
export interface OpenTerminal {
  operation: string;
  /** The runner's name. */
  runner: string;
  /** True once its shell has ended, as far as this browser knows. */
  ended: boolean;
}

const NAME = "gantry.terminals";
/** More are forgotten, the oldest first; they go on. */
const AT_MOST = 20;
const listeners = new Set<() => void>();
let known: readonly OpenTerminal[] | undefined;

function all(): readonly OpenTerminal[] {
  known ??= read();
  return known;
}

/** The list of this browser. It may be of an earlier release or damaged: then it is empty. */
function read(): readonly OpenTerminal[] {
  try {
    const value: unknown = JSON.parse(kept(NAME) ?? "[]");
    return Array.isArray(value) ? value.filter((one): one is OpenTerminal => typeof one?.operation === "string" && typeof one.runner === "string") : [];
  } catch {
    return [];
  }
}

function change(next: readonly OpenTerminal[]): void {
  known = next.slice(-AT_MOST);
  keep(NAME, JSON.stringify(known));
  for (const listener of listeners) listener();
}

/** Adds a terminal. */
export function remember(terminal: OpenTerminal): void {
  change([...all().filter((one) => one.operation !== terminal.operation), terminal]);
}

/** Notes that a terminal's shell has ended. */
export function noteEnd(operation: string): void {
  if (all().some((one) => one.operation === operation && !one.ended)) change(all().map((one) => (one.operation === operation ? { ...one, ended: true } : one)));
}

/** Takes a terminal off the list. */
export function forget(operation: string): void {
  change(all().filter((one) => one.operation !== operation));
}

/** The terminals that were opened in this browser, the oldest first. */
export function useTerminals(): readonly OpenTerminal[] {
  return useSyncExternalStore((listener) => {
    const other = (event: StorageEvent) => {
      if (event.key !== NAME) return;
      known = undefined;
      listener();
    };
    listeners.add(listener);
    window.addEventListener("storage", other);
    return () => {
      listeners.delete(listener);
      window.removeEventListener("storage", other);
    };
  }, all);
}
