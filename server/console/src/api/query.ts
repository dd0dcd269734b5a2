import { QueryClient } from "@tanstack/react-query";
import { ProblemError } from "./problem";

/**
 * The console's cache of answers.
 *
 * The first word of each query's key is the topic of the server's hints (`live/hints.ts`): a hint makes all queries of
 * its topic stale. So nothing is asked for again by time, by focus or by mounting.
 */
export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: Number.POSITIVE_INFINITY,
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
      retry: (failures, error) => error instanceof ProblemError && error.isUnreachable && failures < 3,
    },
    mutations: { retry: false },
  },
});
