/** The longest address that becomes a link, in characters. */
const MOST = 4096;

/** An address that a link of a stranger may lead to: http, https or mailto. Undefined for every other one. */
export function safeAddress(href: string): string | undefined {
  if (href.length > MOST) return undefined;
  let url: URL;
  try {
    // Without a base: an address without its scheme would lead into the console.
    url = new URL(href);
  } catch {
    return undefined;
  }
  return url.protocol === "http:" || url.protocol === "https:" || url.protocol === "mailto:" ? url.href : undefined;
}
