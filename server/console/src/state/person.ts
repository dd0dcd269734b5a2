/**
 * The person of this page.
 *
 * Two people may use one browser. So what it keeps of a person is forgotten when that person signs out, or another one
 * signs in; and a page never goes from one person to another: it is loaded anew, in each tab.
 */
import { forgetAll, keep, kept } from "./storage";

/** The id of the person who was signed in last; the other tabs hear its changes. */
const NAME = "gantry.person";

/** The beginnings of the names of what is a person's own. Theme, language, widths and the like are the browser's. */
const OF_PERSON = [NAME, "gantry.draft.", "gantry.edit.", "gantry.outbox.", "gantry.terminals", "gantry.shell.", "gantry.notifications.told"];

let here: string | undefined;

/** Notes who is signed in, by the user's id. If the page was another person's, it is loaded anew. */
export function noteWho(id: string): void {
  if (here === id) return;
  if (here !== undefined) return leave("/");
  here = id;
  if (kept(NAME) === id) return;
  forgetAll(OF_PERSON);
  keep(NAME, id);
}

/** Forgets the person, and goes to this page of the console, which is loaded anew. */
export function leave(to: "/" | "/sign-in"): void {
  forgetAll(OF_PERSON, true);
  location.replace(to);
}

/** Leaves the page when another tab signs out, or signs in as another person. Returns how to stop. */
export function followOtherTabs(): () => void {
  const hear = (event: StorageEvent) => {
    if (event.key === NAME && here !== undefined && event.newValue !== here) location.replace("/");
  };
  addEventListener("storage", hear);
  return () => removeEventListener("storage", hear);
}
