import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "./client";
import { queries } from "./query";
import type { NamedToolServer, ToolServerSigningIn, ToolServers } from "./schema";

/** The registered tool servers, with the person's sign-ins to them. */
export const toolServersQuery = queryOptions({
  queryKey: ["permissions", "tool-servers"],
  queryFn: (): Promise<ToolServers> => answer(api.GET("/api/v1/tool-servers")),
  staleTime: 0,
});

/** Begins a sign-in: the address of the page that the person opens, and whose page that is. */
export function beginSignIn(body: NamedToolServer): Promise<ToolServerSigningIn> {
  return answer(api.POST("/api/v1/tool-servers/sign-in", { body }));
}

/** Signs out of a tool server. */
export async function signOutOf(body: NamedToolServer): Promise<void> {
  await answer(api.POST("/api/v1/tool-servers/sign-out", { body }));
  await queries.invalidateQueries({ queryKey: toolServersQuery.queryKey });
}
