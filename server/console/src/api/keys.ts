import { infiniteQueryOptions } from "@tanstack/react-query";
import { answer, api } from "./client";
import { queries } from "./query";
import type { CreatedKey, CreateKey, Keys } from "./schema";

/** The person's API keys and sign-ins, the newest first, page by page. */
export const keysQuery = infiniteQueryOptions({
  queryKey: ["keys", "own"],
  queryFn: ({ pageParam }): Promise<Keys> =>
    answer(api.GET("/api/v1/keys", { params: { query: { limit: 200, ...(pageParam ? { after: pageParam } : {}) } } })),
  initialPageParam: "",
  getNextPageParam: (page: Keys) => page.next ?? undefined,
});

/** Makes an API key. The answer holds the key itself, which the server tells once. */
export async function createKey(body: CreateKey, idempotency: string): Promise<CreatedKey> {
  const created = await answer(api.POST("/api/v1/keys", { body, params: { header: { "Idempotency-Key": idempotency } } }));
  await queries.invalidateQueries({ queryKey: ["keys"] });
  return created;
}

/** Ends a key or a sign-in, and with a key the keys that it made. */
export async function endKey(id: string): Promise<void> {
  await answer(api.DELETE("/api/v1/keys/{id}", { params: { path: { id } } }));
  await queries.invalidateQueries({ queryKey: ["keys"] });
}
