import { queryOptions } from "@tanstack/react-query";
import { answer, api, idempotencyKey } from "./client";
import type { CancelAccepted, ModelUsage, Output, Rewound, StreamName } from "./schema";

/** The tokens and the cost of a session, by model. Its topic is that of sessions: it changes with their turns. */
export function sessionUsageQuery(session: string) {
  return queryOptions({
    queryKey: ["sessions", "usage", session],
    queryFn: (): Promise<ModelUsage> => answer(api.GET("/api/v1/sessions/{id}/usage", { params: { path: { id: session } } })),
  });
}

/** Asks to stop the turn that works, with its operations. It has stopped once the log says so. */
export function stopTurn(session: string): Promise<CancelAccepted> {
  return answer(api.POST("/api/v1/sessions/{id}/cancel", { params: { path: { id: session } } }));
}

/** Goes back to before the message of a turn. A second call with the same key goes on where the first one stopped. */
export function rewind(session: string, turn: string, parts: { conversation: boolean; files: boolean }, key = idempotencyKey()): Promise<Rewound> {
  return answer(
    api.POST("/api/v1/sessions/{id}/rewind", {
      params: { path: { id: session }, header: { "Idempotency-Key": key } },
      body: { turn, ...parts },
    }),
  );
}

/** A piece of an operation's stored output, from a byte on. */
export function readOutput(operation: string, stream: StreamName, offset: number, limit: number): Promise<Output> {
  return answer(api.GET("/api/v1/operations/{id}/output", { params: { path: { id: operation }, query: { stream, offset, limit } } }));
}
