import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { answer, api } from "./client";
import type { Session, Sessions } from "./schema";

/** The sessions that were used last. */
export const recentSessionsQuery = queryOptions({
  queryKey: ["sessions", "recent"],
  queryFn: (): Promise<Sessions> => answer(api.GET("/api/v1/sessions", { params: { query: { limit: 50 } } })),
});

/** All sessions with this text in their titles, page by page; all of them for an empty text. */
export function sessionsQuery(search: string) {
  return infiniteQueryOptions({
    queryKey: ["sessions", "list", search],
    queryFn: ({ pageParam }): Promise<Sessions> =>
      answer(
        api.GET("/api/v1/sessions", {
          params: { query: { limit: 100, ...(search ? { search } : {}), ...(pageParam ? { after: pageParam } : {}) } },
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
