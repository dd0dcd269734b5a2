import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "./client";
import type { Runners } from "./schema";

/** The runners that the person may choose, by name. */
export const runnersQuery = queryOptions({
  queryKey: ["runners", "all"],
  queryFn: (): Promise<Runners> => answer(api.GET("/api/v1/runners", { params: { query: { limit: 500 } } })),
});
