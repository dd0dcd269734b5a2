import { queryOptions } from "@tanstack/react-query";
import { answer, api } from "./client";
import type { CommandDone, Commands, RunCommand } from "./schema";

/** The commands of conversations, in the order in which help lists them. They change with the server's version only. */
export const commandsQuery = queryOptions({
  queryKey: ["commands"],
  queryFn: (): Promise<Commands> => answer(api.GET("/api/v1/commands")),
});

/** Runs a command in a session. Its line begins with a slash. */
export function runCommand(session: string, body: RunCommand): Promise<CommandDone> {
  return answer(api.POST("/api/v1/sessions/{id}/commands", { params: { path: { id: session } }, body }));
}
