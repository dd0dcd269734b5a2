// A picture of every page, in both themes and two widths, and what Lighthouse says of the main ones. The pictures are
// for people to look at; this fails only if a page cannot be shown, or Lighthouse gives fewer than 95 points.
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { api, launch, open, play, server, signIn } from "./stage.mjs";
import { chats, machinesAndPeople, past } from "./world.mjs";

const { PICTURES, LIGHTHOUSE, PICTURES_LANGUAGE: language = "en" } = process.env;
const LOCALES = { en: "en-GB", zh: "zh-CN" };
const WIDTHS = { wide: { viewport: { width: 1440, height: 900 } }, phone: { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 } };
const LEAST = 95;

let shown;
let desk;
const pages = () => ({
  "chat-new": "/chat?new=true",
  chats: "/chat",
  chat: shown.fix,
  "chat-approval": shown.deploy,
  "chat-task": shown.serve,
  inbox: "/inbox",
  runners: "/runners",
  "runners-add": "/runners?enrol=1",
  sandboxes: "/sandboxes",
  files: "/files",
  "files-folder": "/files?path=src",
  terminal: "/terminal",
  ...Object.fromEntries(["runner", "models", "agent", "rules", "extensions", "appearance", "notifications", "keys", "sign-ins", "account"].map((part) => [`settings-${part}`, `/settings#${part}`])),
  people: "/admin/people",
  everyone: "/admin/everyone",
  audit: "/admin/audit",
  usage: "/usage",
  status: "/status",
  "not-found": "/nowhere",
});

/** Waits until nothing is loaded or moves any more, and a question can be answered. */
async function rests(page) {
  await page.locator("main, [role=main]").first().waitFor();
  await page.locator("[role=status].late, [id^=approval-] button:disabled").first().waitFor({ state: "detached" });
  await page.waitForLoadState("networkidle");
  await page.evaluate(() => document.fonts.ready);
}

/** What is above a page or beside it: the palette, the panel of a chat. The panel stays open, so it is the last. */
const above = {
  palette: async (page) => {
    await page.goto(server + shown.fix);
    await rests(page);
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").waitFor();
  },
  "chat-extensions": async (page) => {
    await page.goto(server + shown.fix);
    await rests(page);
    await page.getByRole("button", { name: /^(Extensions of this chat|此对话的扩展)$/ }).press("Enter");
    await page.getByRole("dialog").waitFor();
  },
  "chat-panel": async (page) => {
    await page.goto(server + shown.fix);
    await page.getByRole("button", { name: /^(Open panel|打开侧栏|打开面板)$/ }).press("Enter");
  },
};

const parts = {
  "a world to look at": async () => {
    await mkdir(PICTURES, { recursive: true });
    await machinesAndPeople();
    desk = await open({ ...WIDTHS.wide, locale: LOCALES[language] });
    shown = await chats(await signIn(desk), language);
    await past(shown);
  },
};
for (const [width, options] of Object.entries(WIDTHS)) {
  for (const colorScheme of ["light", "dark"]) {
    parts[`pictures: ${width}, ${colorScheme}`] = async () => {
      const context = await open({ ...options, colorScheme, locale: LOCALES[language], storageState: await desk.storageState() });
      const page = await context.newPage();
      const take = async (name) => {
        await rests(page);
        await page.screenshot({ path: `${PICTURES}/${name}-${width}-${colorScheme}-${language}.png`, animations: "disabled" });
      };
      for (const [name, path] of Object.entries(pages())) {
        await page.goto("about:blank");
        await page.goto(server + path);
        await take(name);
      }
      for (const [name, show] of Object.entries(above)) {
        await show(page);
        await take(name);
      }
      await page.goto("about:blank");
      await context.clearCookies();
      await page.goto(`${server}/sign-in`);
      await take("sign-in");
      await context.close();
    };
  }
}
// Lighthouse lets a look at a page that it has closed fail, and catches that nowhere.
process.on("unhandledRejection", (error) => {
  if (!error?.protocolMethod) throw error;
});
parts["what Lighthouse says"] = async () => {
  const { default: lighthouse } = await import(`${LIGHTHOUSE}/core/index.js`);
  const profile = await mkdtemp(`${tmpdir()}/lighthouse-`);
  const browser = await launch(profile, ["--remote-debugging-port=0"]);
  await signIn(browser);
  const [port] = (await readFile(`${profile}/DevToolsActivePort`, "utf8")).split("\n");
  const few = [];
  for (const path of [shown.fix, "/inbox", "/runners", "/settings", "/usage", "/admin/people", "/terminal", "/sign-in"]) {
    const { lhr } = await lighthouse(server + path, {
      port: Number(port),
      output: "json",
      logLevel: "error",
      onlyCategories: ["accessibility", "best-practices"],
      disableStorageReset: true,
      formFactor: "desktop",
      screenEmulation: { disabled: true },
      throttlingMethod: "provided",
      maxWaitForLoad: 15_000,
    });
    const points = Object.values(lhr.categories).map(({ title, score }) => `${title} ${Math.round(score * 100)}`);
    const missed = Object.values(lhr.categories).flatMap(({ auditRefs }) => auditRefs.filter(({ id, weight }) => weight > 0 && lhr.audits[id].score !== null && lhr.audits[id].score < 1).map(({ id }) => `${id}: ${lhr.audits[id].title}`));
    console.error(`lighthouse ${path}: ${points.join(", ")}${missed.map((one) => `\n  ${one}`).join("")}`);
    if (Object.values(lhr.categories).some(({ score }) => score * 100 < LEAST)) few.push(path);
  }
  await browser.close();
  await rm(profile, { recursive: true });
  if (few.length > 0) throw new Error(`fewer than ${LEAST} points: ${few.join(", ")}`);
};
parts["nothing runs on"] = async () => {
  const { operations } = await api("get", "/operations?state=open");
  for (const { id } of operations) await api("post", `/operations/${id}/cancel`);
};
await play(parts);
