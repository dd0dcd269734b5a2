/**
 * The server's clock, as far as this browser knows it.
 *
 * Ages and deadlines are the server's, and this machine's clock may be wrong by hours. Each answer's `Date` header
 * tells by how much; only a difference of more than two seconds counts, because the header has whole seconds.
 */
let ahead = 0;

const IGNORED_MS = 2000;

/** Notes the time that an answer told. */
export function heardServerTime(date: string | null): void {
  const told = date ? Date.parse(date) : Number.NaN;
  if (Number.isNaN(told)) return;
  const difference = told - Date.now();
  ahead = Math.abs(difference) > IGNORED_MS ? difference : 0;
}

/** The server's time now, in milliseconds since 1970. */
export function serverTime(): number {
  return Date.now() + ahead;
}
