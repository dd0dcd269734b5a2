/** What a place can keep apart, in the order in which it is told. */
export const PROPERTIES = ["file_writes", "file_reads", "credential", "sockets", "network", "processes", "resources", "kill_tree", "kernel"] as const;

/** One thing that a place can keep apart. */
export type Property = (typeof PROPERTIES)[number];

/** The properties of an isolation as the server writes it: `none`, or names joined by `+`. Names that the console does not know are left out. */
export function propertiesOf(isolation: string): Property[] {
  const names = new Set(isolation.split("+"));
  return PROPERTIES.filter((property) => names.has(property));
}
