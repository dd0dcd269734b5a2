import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "./client";
import { queries } from "./query";
import type { NamedToolServer, SessionToolServers, ToolServerSigningIn, ToolServers } from "./schema";

/** The registered tool servers, with the person's sign-ins to them. */
export const toolServersQuery = queryOptions({
  queryKey: ["permissions", "tool-servers"],
  queryFn: (): Promise<ToolServers> => answer(api.GET("/api/v1/tool-servers")),
  staleTime: 0,
});

/** The tool servers of a session, with the prompts and resources of those that are connected. No hint tells of a connection. */
export function sessionToolServersQuery(session: string) {
  return queryOptions({
    queryKey: ["permissions", "tool-servers", session],
    queryFn: (): Promise<SessionToolServers> => answer(api.GET("/api/v1/sessions/{id}/tool-servers", { params: { path: { id: session } } })),
    staleTime: 0,
  });
}

/** Begins a sign-in: the address of the page that the person opens, and whose page that is. */
export function beginSignIn(body: NamedToolServer): Promise<ToolServerSigningIn> {
  return answer(api.POST("/api/v1/tool-servers/sign-in", { body }));
}

/** Signs out of a tool server. */
export async function signOutOf(body: NamedToolServer): Promise<void> {
  await answer(api.POST("/api/v1/tool-servers/sign-out", { body }));
  await queries.invalidateQueries({ queryKey: toolServersQuery.queryKey });
}
