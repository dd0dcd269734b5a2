import { queryOptions, useQuery } from "@tanstack/react-query";
import { answer, api } from "./client";
import type { Answer, Approval, Approvals } from "./schema";

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

/** One question. An answer needs its digest, which only the API tells. */
export function approvalQuery(id: string) {
  return queryOptions({
    queryKey: ["approvals", "one", id],
    queryFn: (): Promise<Approval> => answer(api.GET("/api/v1/approvals/{id}", { params: { path: { id } } })),
  });
}

/** Answers a question. It is refused (409) if another answer came first. */
export function answerApproval(id: string, digest: string, words: Answer): Promise<Approval> {
  return answer(api.POST("/api/v1/approvals/{id}/answer", { params: { path: { id } }, body: { digest, answer: words } }));
}
