import { infiniteQueryOptions } from "@tanstack/react-query";
import { answer, api } from "./client";
import type { AuditEntry, AuditLog } from "./schema";

/** Which entries of the audit log are meant. */
export interface AuditFilter {
  /** A person's name or id, a runner's id, or `system`. */
  who?: string | undefined;
  /** The beginning of a kind of action, such as `runner.`. */
  what?: string | undefined;
  /** Entries of this day or later, as `2026-11-28`, by this browser's zone. */
  since?: string | undefined;
}

/** The entries of one page of the list. */
const AT_ONCE = 200;
/** The entries of one request of an export: the most that the server gives. */
const EXPORTED_AT_ONCE = 500;
/** The most entries that an export holds: it is made in this page's memory. */
export const EXPORT_AT_MOST = 50_000;

function read(filter: AuditFilter, limit: number, place: { before?: number; after?: number }): Promise<AuditLog> {
  const query = {
    limit,
    ...place,
    ...(filter.who ? { who: filter.who } : {}),
    ...(filter.what ? { what: filter.what } : {}),
    ...(filter.since ? { since: new Date(`${filter.since}T00:00:00`).toISOString() } : {}),
  };
  return answer(api.GET("/api/v1/audit", { params: { query } }));
}

/** The entries, in pages that go backwards; each page is in the log's order. */
export function auditQuery(filter: AuditFilter) {
  return infiniteQueryOptions({
    queryKey: ["audit", filter.who ?? "", filter.what ?? "", filter.since ?? ""],
    queryFn: ({ pageParam }): Promise<AuditLog> => read(filter, AT_ONCE, pageParam ? { before: pageParam } : {}),
    initialPageParam: 0,
    getNextPageParam: (page: AuditLog) => (page.entries.length === AT_ONCE ? page.entries[0]?.seq : undefined),
    // The server hints at no new entries, so that to open the page asks again.
    staleTime: 0,
    refetchOnMount: "always",
  });
}

/** Reads the entries from the oldest on, as far as an export goes. `tell` hears how many there are so far. */
export async function exportAudit(filter: AuditFilter, tell: (count: number) => void, signal: AbortSignal): Promise<AuditEntry[]> {
  const all: AuditEntry[] = [];
  for (let after = 0; all.length < EXPORT_AT_MOST; ) {
    signal.throwIfAborted();
    const part = await read(filter, EXPORTED_AT_ONCE, { after });
    all.push(...part.entries);
    tell(all.length);
    const last = part.entries.at(-1);
    if (!last || !part.next) break;
    after = last.seq;
  }
  return all.slice(0, EXPORT_AT_MOST);
}
