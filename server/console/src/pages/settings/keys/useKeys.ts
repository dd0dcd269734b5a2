import { useInfiniteQuery } from "@tanstack/react-query";
import { keysQuery } from "@/api/keys";
import type { Key } from "@/api/schema";

/** The person's keys or sign-ins, as far as they are loaded. */
export function useKeys(wanted: "keys" | "sign-ins") {
  const query = useInfiniteQuery(keysQuery);
  const all: Key[] | undefined = query.data?.pages.flatMap((page) => page.keys);
  const shown = all?.filter((key) => (key.kind === "api_key") === (wanted === "keys"));
  return { ...query, all, shown };
}
