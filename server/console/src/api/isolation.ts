/** The properties that a place can keep apart, in the order of the server. */
export const PROPERTIES = ["file_writes", "file_reads", "credential", "sockets", "network", "processes", "resources", "kill_tree", "kernel"] as const;

/** A property that a place can keep apart. */
export type Property = (typeof PROPERTIES)[number];

/** The properties in an isolation: `network+file_writes`. Words that this console does not know are kept. */
export function propertiesOf(isolation: string): string[] {
  return isolation === "none" ? [] : isolation.split("+").filter((word) => word !== "");
}

/** The isolation with these properties. */
export function isolationOf(properties: readonly string[]): string {
  return properties.length === 0 ? "none" : properties.join("+");
}
