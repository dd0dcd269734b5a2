import { useMemo } from "react";
import { idempotencyKey } from "@/api/client";

/** One key for as long as the same is asked: if an answer was lost and the person asks again, nothing is made twice. */
export function useIdempotencyKey(asked: unknown): string {
  const body = JSON.stringify(asked);
  return useMemo(() => (void body, idempotencyKey()), [body]);
}
