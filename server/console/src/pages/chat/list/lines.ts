import type { Approval, Session } from "@/api/schema";

/** The groups of the list, in their order. */
export type Group = "needsYou" | "working" | "today" | "yesterday" | "week" | "earlier";

/** A chat in the list. */
export interface Entry {
  id: string;
  title: string;
  /** When its newest event happened. */
  at: string;
  /** Questions of its agent that wait for the person. */
  waiting: number;
  working: boolean;
  /** Absent for a chat of a page that is not loaded yet, which is in the list because it needs the person. */
  session?: Session;
}

/** A line of the list. */
export type Line = { kind: "heading"; group: Group } | { kind: "chat"; entry: Entry };

const DAY_MS = 86_400_000;
const WEEK_DAYS = 7;

/**
 * The lines of the list: first the chats that need the person, then those that work, then the others by their day.
 *
 * `sessions` come as the server orders them, the most recently used first. A chat with a question is in the list even if
 * its page is not loaded, if `complete` says that all chats are wanted. `now` is in milliseconds since 1970.
 */
export function linesOf(sessions: readonly Session[], approvals: readonly Approval[], complete: boolean, now: number): Line[] {
  const groups = new Map<Group, Entry[]>(ORDER.map((group) => [group, []]));
  const waiting = countBySession(approvals);
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  for (const session of sessions) {
    const entry: Entry = {
      id: session.id,
      title: session.title,
      at: session.updated_at,
      waiting: session.waiting_approvals ?? waiting.get(session.id) ?? 0,
      working: session.running_turn != null,
      session,
    };
    groups.get(groupOf(entry, midnight))?.push(entry);
  }
  if (complete) groups.get("needsYou")?.push(...missing(sessions, approvals, waiting));
  return ORDER.flatMap((group): Line[] => {
    const entries = groups.get(group) ?? [];
    return entries.length === 0 ? [] : [{ kind: "heading", group }, ...entries.map((entry): Line => ({ kind: "chat", entry }))];
  });
}

const ORDER: readonly Group[] = ["needsYou", "working", "today", "yesterday", "week", "earlier"];

function groupOf(entry: Entry, midnight: number): Group {
  if (entry.waiting > 0) return "needsYou";
  if (entry.working) return "working";
  const at = Date.parse(entry.at);
  if (at >= midnight) return "today";
  // Days may have 23 or 25 hours: the middle of the day before is in it for certain.
  if (at >= new Date(midnight - DAY_MS / 2).setHours(0, 0, 0, 0)) return "yesterday";
  return at >= midnight - (WEEK_DAYS - 1) * DAY_MS ? "week" : "earlier";
}

function countBySession(approvals: readonly Approval[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const approval of approvals) counts.set(approval.session, (counts.get(approval.session) ?? 0) + 1);
  return counts;
}

function missing(sessions: readonly Session[], approvals: readonly Approval[], waiting: ReadonlyMap<string, number>): Entry[] {
  const seen = new Set(sessions.map((session) => session.id));
  const entries: Entry[] = [];
  for (const approval of approvals) {
    if (seen.has(approval.session)) continue;
    seen.add(approval.session);
    entries.push({ id: approval.session, title: approval.session_title, at: approval.asked_at, waiting: waiting.get(approval.session) ?? 1, working: true });
  }
  return entries;
}
