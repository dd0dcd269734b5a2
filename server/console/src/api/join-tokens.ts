import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "./client";
import { queries } from "./query";
import type { CreateJoinToken, JoinToken, ListedJoinToken } from "./schema";

/** The person's join tokens with which machines can still enrol, the newest first: at most 100. */
export const joinTokensQuery = queryOptions({
  queryKey: ["join_tokens", "open"],
  queryFn: async (): Promise<ListedJoinToken[]> => {
    const found = await answer(api.GET("/api/v1/join-tokens", { params: { query: { limit: 100 } } }));
    return found.join_tokens;
  },
});

function changed(): Promise<void> {
  return queries.invalidateQueries({ queryKey: ["join_tokens"] });
}

/** Makes a join token. The token itself is in this answer and in no later one. */
export async function createJoinToken(terms: CreateJoinToken, key: string): Promise<JoinToken> {
  const header = { "Idempotency-Key": key };
  const made = await answer(api.POST("/api/v1/join-tokens", { params: { header }, body: terms }));
  await changed();
  return made;
}

/** Ends a join token. Runners that enrolled with it stay. */
export async function endJoinToken(id: string): Promise<void> {
  await answer(api.DELETE("/api/v1/join-tokens/{id}", { params: { path: { id } } }));
  await changed();
}
