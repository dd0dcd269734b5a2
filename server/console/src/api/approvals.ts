import { queryOptions, useQuery } from "@tanstack/react-query";
import { answer, api } from "./client";
import type { Approvals } from "./schema";

/** The questions of the person's agents that wait for an answer, the newest first. */
export const waitingQuery = queryOptions({
  queryKey: ["approvals", "waiting"],
  queryFn: (): Promise<Approvals> => answer(api.GET("/api/v1/approvals", { params: { query: { limit: 500 } } })),
});

/** How many questions wait for the person. */
export function useWaiting(): number {
  return useQuery(waitingQuery).data?.approvals.length ?? 0;
}

/** The questions that were asked last, also those that have an answer. */
export const answeredQuery = queryOptions({
  queryKey: ["approvals", "all"],
  queryFn: (): Promise<Approvals> => answer(api.GET("/api/v1/approvals", { params: { query: { all: true, limit: 50 } } })),
});
