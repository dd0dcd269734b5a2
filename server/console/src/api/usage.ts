import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "./client";
import type { ModelUsage } from "./schema";

/** The property by which calls of models are summed. */
export type UsageBy = "day" | "model" | "person";

/** The usage of models in the last `days` days: the person's own, or everyone's, which admins may see. */
export function usageQuery(by: UsageBy, days: number, all: boolean) {
  return queryOptions({
    queryKey: ["usage", by, days, all],
    queryFn: (): Promise<ModelUsage> => answer(api.GET("/api/v1/usage", { params: { query: { by, since: `${days}d`, all } } })),
    // Usage grows with every call; to open the page asks again.
    staleTime: 0,
    refetchOnMount: "always",
  });
}
