// What the scripts share: wishes to the stage, a guarded browser, sign-in, and what axe finds.
//
// A wish is one line of JSON on standard output, and its answer one line on standard input: see tests/src/stage.rs.
import { createInterface } from "node:readline";

const { SERVER, PLAYWRIGHT, CHROMIUM, AXE } = process.env;
const { chromium } = await import(`${PLAYWRIGHT}/index.mjs`);

/** The address of the server, as the browser reaches it. */
export const server = SERVER;

/** How long anything may take before a script says that it does not happen, in milliseconds. */
const PATIENCE_MS = 60_000;

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
let last = Promise.resolve();

/** Asks the stage for something, one wish after the other. */
export function wish(name, wishes = {}) {
  last = last.then(async () => {
    console.log(JSON.stringify({ wish: name, ...wishes }));
    const { value, done } = await answers.next();
    if (done) throw new Error(`the stage is gone, and did not answer to ${name}`);
    return JSON.parse(value);
  });
  return last;
}

/** Gives the model its next replies: `{ text, thoughts, calls }`, or `{ pieces }`. */
export const replies = (...list) => wish("replies", { replies: list });

/** Waits until the model has begun all of its replies but so many. */
export const untilReplied = (left) => wish("until_replied", { left });

/** A reply that asks for tools: pairs of a name and arguments. */
export const calls = (...list) => ({ calls: list });

/** A request as the owner. Fails unless the answer is a success. */
export async function api(method, path, body) {
  const answer = await wish("api", { method, path: `/api/v1${path}`, ...(body && { body }) });
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
const wrong = [];

/** Starts a browser of its own with this profile, for other tools; it notes nothing. */
export const launch = (profile, args) => chromium.launchPersistentContext(profile, { executablePath: CHROMIUM, args: ["--no-sandbox", ...args], locale: "en-GB" });

/**
 * Opens a browser of its own, as another person has. It notes what no page may do: ask another origin, open a
 * dialog of the browser's, break the policy of its contents, fail in a script.
 */
export async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-GB", reducedMotion: "reduce", ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  const note = (what) => wrong.push(what);
  context.on("request", (request) => {
    const url = new URL(request.url());
    if (!["blob:", "data:"].includes(url.protocol) && url.origin !== new URL(server).origin) note(`a request to ${url}`);
  });
  context.on("page", (page) => {
    page.on("dialog", (dialog) => {
      note(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("pageerror", (error) => note(`an error in a script: ${error.stack ?? error}`));
    page.on("console", (message) => {
      if (/content security policy/i.test(message.text())) note(message.text());
    });
  });
  return context;
}

/** Signs in on a new page of this browser, by the link that holds a code; the owner, unless there is another code. */
export async function signIn(context, code) {
  const page = await context.newPage();
  await page.goto(`${server}/sign-in#code=${code ?? (await wish("code"))}`);
  await page.getByRole("main").getByRole("textbox").press("Enter");
  await page.waitForURL((url) => url.pathname !== "/sign-in");
  return page;
}

/** Sends a message by keyboard. */
export async function send(page, text) {
  const box = input(page);
  await box.fill(text);
  await box.press("Enter");
}

/** The input of a chat, in either language. */
export const input = (page) => page.getByRole("textbox", { name: /^(Message|消息)$/ });

/**
 * Presses a button of a question until the answer is on its way: a question that has just come hears nothing for a
 * moment, because a press may have been meant for something else.
 */
export async function answer(button) {
  await button.waitFor();
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    await button.click({ timeout: 2000 }).catch(() => {});
    const gone = await button.waitFor({ state: "hidden", timeout: 1000 }).then(() => true, () => false);
    if (gone) return;
    check(performance.now() < until, `${button} does nothing`);
  }
}

/** The conversation that is open. */
export const conversation = (page) => page.getByRole("region", { name: /^(Conversation|对话内容)$/ });

/** A tool card whose first line holds these words. */
export const card = (page, words) => page.getByRole("region", { name: /^Call of / }).filter({ hasText: words });

/**
 * Notes what axe finds on the page that keeps people from using it. With `colours` it looks for those alone, which
 * another theme changes.
 */
export async function axe(page, where, { colours = false } = {}) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(await axeSource);
  const found = await page.evaluate(async (rules) => {
    // Text that appears slowly has the colours of its ground for a moment.
    await Promise.all(document.getAnimations().filter((one) => one.effect.getComputedTiming().endTime < 2000).map((one) => one.finished.catch(() => {})));
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"], ...(rules && { runOnly: rules }) });
    return violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, help, nodes }) => `${id}: ${help}\n    ${nodes.slice(0, 4).map((node) => `${node.html.slice(0, 300)}\n      ${node.any.map((any) => any.message).join("; ")}`).join("\n    ")}`);
  }, colours ? ["color-contrast"] : undefined);
  for (const one of found) wrong.push(`${where}: ${one}`);
}
const axeSource = AXE && import("node:fs/promises").then(({ readFile }) => readFile(`${AXE}/axe.min.js`, "utf8"));

/** Fails unless it is so. */
export function check(is, words) {
  if (!is) throw new Error(words);
}

/** Waits until the locator matches so many elements. */
export async function count(locator, number) {
  await locator.nth(number - 1).waitFor({ state: "attached" });
  const found = await locator.count();
  check(found === number, `${found} of ${locator}, not ${number}`);
}

/** Plays the parts of a script, each named by a sentence; says which one failed, and what pages did that none may. */
export async function play(parts) {
  let now = "";
  try {
    for (const [name, part] of Object.entries(parts)) {
      now = name;
      const since = performance.now();
      await part();
      console.error(`${name}: ${((performance.now() - since) / 1000).toFixed(1)} s`);
      check(wrong.length === 0, `pages did what none may:\n  ${wrong.join("\n  ")}`);
    }
  } catch (error) {
    console.error(`failed: ${now}\n${error.stack ?? error}`);
    for (const page of browser.contexts().flatMap((context) => context.pages())) {
      const text = await page.locator("body").ariaSnapshot({ timeout: 5000 }).catch(String);
      console.error(`--- ${page.url()}\n${text.slice(0, 6000)}`);
      if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/failed-${Date.now()}.png` }).catch(() => {});
    }
    process.exitCode = 1;
  }
  await browser.close();
  process.stdin.destroy();
}
