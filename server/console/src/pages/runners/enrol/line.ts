import type { JoinToken, RunnerArchive } from "@/api/schema";
import { reachOf } from "@/state/reach";

/** The characters of an address that stand in a command line as they are. A host may have others. */
const ADDRESS = /^https?:\/\/[A-Za-z0-9.:[\]-]+$/;

/** An address of the server as a command line takes it, or undefined if it is none. */
export function serverAddress(text: string): string | undefined {
  const address = text.trim().replace(/\/+$/, "");
  return ADDRESS.test(address) && URL.canParse(address) ? address : undefined;
}

/** True if anyone on the way could read what is sent to the address. `gantry-runner` refuses it unless it is told otherwise. */
export function isPlain(address: string): boolean {
  return address.startsWith("http://") && reachOf(address) !== "machine";
}

/** What a line is made of. */
export interface LineParts {
  /** The server's address, from {@link serverAddress}. */
  server: string;
  /** True if the server made its certificate itself, which `curl` does not trust. */
  ownCertificate: boolean;
}

/**
 * The line that is pasted on a machine without Gantry: the same as `gantry runners add` prints.
 *
 * It runs nothing before the checksum holds, so it does not matter who vouches for the server's certificate. The token
 * goes through a pipe, so that no list of processes shows it; without a token the line reads it from its own standard
 * input.
 */
export function installLine({ server, ownCertificate }: LineParts, archive: RunnerArchive, token?: string): string {
  const curl = ownCertificate ? "curl -fsSk" : "curl -fsS";
  const pipe = token === undefined ? "" : `echo ${token} | `;
  return (
    `(s=${archive.sha256}; d=$(mktemp -d) && trap 'rm -rf "$d"' EXIT && ${curl} ${server}/install/$s/${archive.name} >$d/r.tgz ` +
    `&& echo "$s  $d/r.tgz" | sha256sum -c && tar -xzf $d/r.tgz -C $d && ${pipe}$d/gantry-runner/gantry-runner install --server ${server} -)`
  );
}

/**
 * The line for a machine that has `gantry-runner`: it enrols the machine and starts the runner, in containers on a Docker
 * host. Without a token it reads it from its standard input.
 */
export function enrolLine(server: string, token?: string, backend?: "docker"): string {
  return `gantry-runner enrol --server ${server} ${token ?? "-"} && gantry-runner run${backend ? ` --backend ${backend}` : ""}`;
}

/** True if all that the server's answer adds to a line is plain: no text of it can be a command. */
export function isSound(token: JoinToken): boolean {
  const plain = (text: string) => /^[A-Za-z0-9._-]+$/.test(text);
  return plain(token.token) && (token.archives ?? []).every((archive) => /^[0-9a-f]{64}$/.test(archive.sha256) && plain(archive.name) && plain(archive.arch));
}

/** The labels in a text with one `key=value` a line, or undefined if a line is none, a key is there twice, or there are over 32. */
export function parseLabels(text: string): Record<string, string> | undefined {
  const labels = new Map<string, string>();
  for (const line of text.split("\n").map((one) => one.trim())) {
    if (line === "") continue;
    const at = line.indexOf("=");
    const key = line.slice(0, Math.max(at, 0)).trim();
    if (key === "" || labels.has(key)) return undefined;
    labels.set(key, line.slice(at + 1).trim());
  }
  return labels.size <= 32 ? Object.fromEntries(labels) : undefined;
}
