import createClient, { type FetchResponse, type Middleware } from "openapi-fetch";
import type { paths } from "./schema";
import { heardServerTime } from "@/state/clock";
import { ProblemError, problemOf } from "./problem";

type Listener = () => void;
const signedOutListeners = new Set<Listener>();

/** Calls `listener` when the server says that this browser is not signed in. Returns how to stop. */
export function onSignedOut(listener: Listener): () => void {
  signedOutListeners.add(listener);
  return () => signedOutListeners.delete(listener);
}

/** Tells the listeners that this browser is not signed in any more. */
export function signedOut(): void {
  for (const listener of signedOutListeners) listener();
}

const listen: Middleware = {
  onResponse({ response, schemaPath }) {
    heardServerTime(response.headers.get("date"));
    if (response.status === 401 && schemaPath !== "/api/v1/browser/sign-in") signedOut();
  },
};

/** The server's API. The cookie of this browser signs its requests in. */
export const api = createClient<paths>({ baseUrl: "/", credentials: "same-origin" });
api.use(listen);

/**
 * The body of an answer.
 *
 * Throws a {@link ProblemError} if the server refused the request or no answer came.
 */
export async function answer<T extends Record<string | number, unknown>, O, M extends `${string}/${string}`>(
  request: Promise<FetchResponse<T, O, M>>,
): Promise<NonNullable<FetchResponse<T, O, M>["data"]>> {
  let result: FetchResponse<T, O, M>;
  try {
    result = await request;
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    throw new ProblemError({ code: "unreachable", status: 0, detail });
  }
  if (!result.response.ok) throw problemOf(result.error, result.response);
  return result.data as NonNullable<FetchResponse<T, O, M>["data"]>;
}

/** A new idempotency key: the server carries out a request that is sent again with it once. */
export function idempotencyKey(): string {
  return crypto.randomUUID();
}
