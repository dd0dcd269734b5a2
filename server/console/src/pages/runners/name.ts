/** The longest name of a runner, in characters. */
export const NAME_AT_MOST = 63;

/** True if a text can be the name of a runner: what DNS takes for a label, with dots and underscores. */
export function isName(text: string): boolean {
  return text.length <= NAME_AT_MOST && /^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$/.test(text);
}

/** Names in a row, with the commas of a language. */
export function listNames(names: readonly string[], language: string): string {
  return new Intl.ListFormat(language, { type: "conjunction", style: "narrow" }).format(names);
}
