/** The name of this browser in lists of sign-ins, such as “Firefox on Linux”. It need not be exact. */
export function deviceName(agent = navigator.userAgent): string {
  const browser =
    [
      ["Edg/", "Edge"],
      ["OPR/", "Opera"],
      ["Firefox/", "Firefox"],
      ["Chrome/", "Chrome"],
      ["Safari/", "Safari"],
    ].find(([mark]) => agent.includes(mark ?? ""))?.[1] ?? "Browser";
  const system =
    [
      ["Android", "Android"],
      ["iPhone", "iPhone"],
      ["iPad", "iPad"],
      ["Windows", "Windows"],
      ["Mac OS", "macOS"],
      ["Linux", "Linux"],
    ].find(([mark]) => agent.includes(mark ?? ""))?.[1] ?? "";
  return system ? `${browser} on ${system}` : browser;
}
