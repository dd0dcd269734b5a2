import type { CreateKey, Key, ScopeName } from "@/api/schema";

/** What a key can be for, in the order of the list. */
export const SCOPES = ["chat", "runners", "exec", "read", "admin", "metrics"] as const satisfies readonly ScopeName[];

/** The scopes of a key where nobody chooses. */
export const USUAL_SCOPES: readonly ScopeName[] = ["chat", "runners", "exec", "read"];

const DAY_S = 86_400;

/** How long a key may be good for, in days; `undefined` for no end. */
export const VALIDITIES = [7, 30, 90, 365, undefined] as const;

/** What a person has typed about a new key. */
export interface KeyForm {
  name: string;
  scopes: readonly ScopeName[];
  /** Days; absent for no end. */
  days: number | undefined;
  /** Addresses or networks with commas or spaces between them; empty for all. */
  from: string;
}

/** The request for what was typed. */
export function requestOf(form: KeyForm): CreateKey {
  const from = form.from.split(/[\s,]+/).filter((part) => part !== "");
  return {
    name: form.name.trim(),
    scopes: SCOPES.filter((scope) => form.scopes.includes(scope)),
    ...(form.days === undefined ? {} : { valid_for_s: form.days * DAY_S }),
    ...(from.length > 0 ? { from: from.join(",") } : {}),
  };
}

/** The keys that end together with this one: those that it made, those that they made, and so on. */
export function endsWith(key: Key, keys: readonly Key[]): Key[] {
  const ended = new Set([key.id]);
  const found: Key[] = [];
  // The list has the newest first, and a key is older than those that it made.
  for (const one of keys.toReversed()) {
    if (!one.made_by || !ended.has(one.made_by) || one.kind !== "api_key") continue;
    ended.add(one.id);
    found.push(one);
  }
  return found;
}
