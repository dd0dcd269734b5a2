/** The form of numbers and times: this browser's own in the console's language (`en-GB` has 24 hours), or else the language's. */
export function localeOf(language: string): string {
  return navigator.languages.find((one) => one === language || one.startsWith(`${language}-`)) ?? language;
}
