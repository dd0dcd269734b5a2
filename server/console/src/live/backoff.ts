/** The waits between attempts to connect. */

/** The first wait, in milliseconds. */
const FIRST_MS = 250;

/** The longest wait, in milliseconds. */
const LONGEST_MS = 15_000;

/** The wait before an attempt, after so many that failed: between half and all of a time that doubles. */
export function backoff(failed: number, random: number): number {
  const most = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failed, 16));
  return Math.round(most / 2 + (random * most) / 2);
}
