import type { AuditEntry } from "@/api/schema";

const COLUMNS = ["seq", "at", "who", "who_id", "what", "outcome", "to", "to_id", "address", "credential", "detail"] as const;

/**
 * The entries as CSV (RFC 4180).
 *
 * A spreadsheet takes a field that begins with one of `= + - @` for a formula, and names are chosen by people. So such
 * a field begins with an apostrophe.
 */
export function asCsv(entries: readonly AuditEntry[]): string {
  const lines = entries.map((entry) => COLUMNS.map((column) => field(column === "detail" ? JSON.stringify(entry.detail) : entry[column])).join(","));
  return `${[COLUMNS.join(","), ...lines].join("\r\n")}\r\n`;
}

function field(value: unknown): string {
  const text = value === undefined || value === null ? "" : String(value);
  const harmless = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

/** The entries as JSON. */
export function asJson(entries: readonly AuditEntry[]): string {
  return `${JSON.stringify(entries, null, 2)}\n`;
}
