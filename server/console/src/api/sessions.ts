import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { answer, api } from "./client";
import { ProblemError } from "./problem";
import { queries } from "./query";
import type { ChangeSession, CreateSession, Session, SessionLink, Sessions } from "./schema";

/** Sessions of a page of the list. */
const PAGE = 100;

/** The sessions that were used last. */
export const recentSessionsQuery = queryOptions({
  queryKey: ["sessions", "recent"],
  queryFn: (): Promise<Sessions> => answer(api.GET("/api/v1/sessions", { params: { query: { limit: 50 } } })),
});

/** The sessions with this text in their titles, page by page; all of them for an empty text. The archived ones are apart. */
export function sessionsQuery(search: string, archived = false) {
  return infiniteQueryOptions({
    queryKey: ["sessions", "list", search, archived],
    queryFn: ({ pageParam, signal }): Promise<Sessions> =>
      answer(
        api.GET("/api/v1/sessions", {
          params: { query: { limit: PAGE, ...(search ? { search } : {}), ...(archived ? { archived } : {}), ...(pageParam ? { after: pageParam } : {}) } },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page: Sessions) => page.next ?? undefined,
  });
}

/** One session. */
export function sessionQuery(id: string) {
  return queryOptions({
    queryKey: ["sessions", "one", id],
    queryFn: (): Promise<Session> => answer(api.GET("/api/v1/sessions/{id}", { params: { path: { id } } })),
  });
}

/** Makes all that the page knows of sessions stale. */
export function sessionsChanged(): Promise<void> {
  return queries.invalidateQueries({ queryKey: ["sessions"] });
}

/** Begins a session. Sent again with the same key, it is still one session. */
export function createSession(body: CreateSession, key: string): Promise<Session> {
  return answer(api.POST("/api/v1/sessions", { params: { header: { "Idempotency-Key": key } }, body }));
}

const TRIES = 20;
const PAUSE_MS = 2000;

/** Makes one of many requests. The server takes so many in a minute: then it waits, and asks again. */
async function patiently<T>(request: () => Promise<T>): Promise<T> {
  for (let left = TRIES; ; left -= 1) {
    try {
      return await request();
    } catch (error) {
      if (!(error instanceof ProblemError) || error.status !== 429 || left === 0) throw error;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

/** Renames, archives or unarchives sessions, one after the other; the first refusal ends it. */
export async function changeSessions(ids: readonly string[], body: ChangeSession): Promise<void> {
  try {
    for (const id of ids) await patiently(() => answer(api.PATCH("/api/v1/sessions/{id}", { params: { path: { id } }, body })));
  } finally {
    await sessionsChanged();
  }
}

/** Deletes sessions with their logs and all output of their commands, one after the other; the first refusal ends it. */
export async function deleteSessions(ids: readonly string[]): Promise<void> {
  try {
    for (const id of ids) {
      await patiently(() => answer(api.DELETE("/api/v1/sessions/{id}", { params: { path: { id } } })));
      queries.removeQueries({ queryKey: ["sessions", "one", id] });
    }
  } finally {
    await sessionsChanged();
  }
}

/** Makes a link to a session, which ends after this many seconds; undefined for one that does not end by itself. */
export async function shareSession(id: string, validForS: number | undefined, key: string): Promise<SessionLink> {
  const body = validForS === undefined ? {} : { valid_for_s: validForS };
  const link = await answer(api.POST("/api/v1/sessions/{id}/links", { params: { path: { id }, header: { "Idempotency-Key": key } }, body }));
  await sessionsChanged();
  return link;
}

/** Ends all links to a session. Returns how many there were. */
export async function endLinks(id: string): Promise<number> {
  const ended = await answer(api.DELETE("/api/v1/sessions/{id}/links", { params: { path: { id } } }));
  await sessionsChanged();
  return ended.links;
}

/** Pins a session to a runner: its name or id, alone or with `/WORKSPACE`. Undefined lets it work on the person's active one. */
export async function pinSession(id: string, place: string | undefined): Promise<void> {
  const params = { path: { id } };
  if (place === undefined) await answer(api.DELETE("/api/v1/sessions/{id}/runner", { params }));
  else await answer(api.PUT("/api/v1/sessions/{id}/runner", { params, body: { runner: place } }));
  await Promise.all([sessionsChanged(), queries.invalidateQueries({ queryKey: ["settings"] })]);
}
