/** Tickets for WebSockets: a page can send no credential with one, so it asks for a ticket by its cookie. */

import type { CreateStreamTicket, Problem, StreamTicket } from "@/api/schema";

/** The longest wait for a ticket, in milliseconds. */
const WITHIN_MS = 10_000;

/** A ticket, or the reason why there is none. */
export type Ticketed =
  | { readonly ok: true; readonly ticket: string }
  /** The browser is not signed in. */
  | { readonly ok: false; readonly why: "signed_out" }
  /** The server says no; another attempt will not help. */
  | { readonly ok: false; readonly why: "refused"; readonly problem: Problem }
  /** The server does not answer, or cannot now. */
  | { readonly ok: false; readonly why: "unreachable" };

/** Asks for a ticket that opens one WebSocket, once, within 30 s. */
export async function askTicket(body: CreateStreamTicket, signal: AbortSignal): Promise<Ticketed> {
  try {
    const answer = await fetch("/api/v1/stream-tickets", {
      method: "POST",
      headers: { "content-type": "application/json" },
      credentials: "same-origin",
      body: JSON.stringify(body),
      signal: AbortSignal.any([signal, AbortSignal.timeout(WITHIN_MS)]),
    });
    if (answer.status === 401) return { ok: false, why: "signed_out" };
    if (answer.ok) return { ok: true, ticket: ((await answer.json()) as StreamTicket).ticket };
    // 429 and 5xx pass; every other refusal stands.
    if (answer.status === 429 || answer.status >= 500) return { ok: false, why: "unreachable" };
    return { ok: false, why: "refused", problem: (await answer.json()) as Problem };
  } catch {
    return { ok: false, why: "unreachable" };
  }
}

/** The address of a WebSocket of this server. */
export function streamUrl(path: string, query: Readonly<Record<string, string>>): string {
  const url = new URL(path, window.location.href);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.search = new URLSearchParams(query).toString();
  return url.href;
}
