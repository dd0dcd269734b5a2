/** Who reaches an address: a link with an address that others do not reach is of no use to them. */
export type Reach = "machine" | "network" | "any";

/** Private networks: RFC 1918, RFC 6598, and the local addresses of both families. */
const PRIVATE = /^(10|192\.168|169\.254|172\.(1[6-9]|2\d|3[01])|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7]))(\.\d+)+$|^\[(f[cd]|fe[89ab])/;
/** Names that only a network of its own knows. */
const LOCAL = /^[^.[]+$|\.(local|lan|internal|home\.arpa)$/;

/** Who reaches this address, as far as it tells: the machine itself, its own network, or any. */
export function reachOf(address: string): Reach {
  const { hostname } = new URL(address);
  if (/^(.+\.)?localhost$/.test(hostname) || hostname === "[::1]" || /^127(\.\d+){3}$/.test(hostname)) return "machine";
  return PRIVATE.test(hostname) || LOCAL.test(hostname) ? "network" : "any";
}
