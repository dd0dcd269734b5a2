import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "./client";
import type { ServerStatus } from "./schema";

/** The state of the server, as of when the page asked. */
export const statusQuery = queryOptions({
  // Runners and models are counted in it, so that their hints make it stale.
  queryKey: ["runners", "status"],
  queryFn: (): Promise<ServerStatus> => answer(api.GET("/api/v1/status")),
  staleTime: 0,
  refetchOnMount: "always",
});
