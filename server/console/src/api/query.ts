import { QueryClient } from "@tanstack/react-query";
import { ProblemError } from "./problem";

/**
 * The console's cache of answers.
 *
 * The first word of each query's key is the topic of the server's hints (`frame/live.ts`): a hint makes all queries of
 * its topic stale. So nothing is asked for again by time, by focus or by mounting.
 */
export const queries = new QueryClient({
  defaultOptions: {
    // A server on this machine answers without a network, and a request that waits for one would seem to be under way.
    queries: {
      networkMode: "always",
      staleTime: Number.POSITIVE_INFINITY,
      refetchOnWindowFocus: false,
      refetchOnReconnect: false,
      retry: (failures, error) => error instanceof ProblemError && error.isUnreachable && failures < 3,
    },
    mutations: { networkMode: "always", retry: false },
  },
});
