/** The head of a Markdown file: values between two lines of `---`. */

/** The value of a key in the head of a Markdown file, where it is on one line; undefined without one. The server reads it in full. */
export function headOf(text: string, key: string): string | undefined {
  const head = /^---[ \t]*\r?\n([\s\S]*?)(?:\r?\n---[ \t]*(?:\r?\n|$)|$)/.exec(text)?.[1];
  const value = head?.split(/\r?\n/).find((line) => line.startsWith(`${key}:`))?.slice(key.length + 1).trim();
  const plain = value?.replace(/^(["'])(.*)\1$/, "$2");
  // The text of these stands on the next lines.
  return plain && !/^[|>][+-]?$/.test(plain) ? plain : undefined;
}
