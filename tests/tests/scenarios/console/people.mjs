// People of different roles, on a phone, by keyboard alone, and in Chinese.
import { answer, api, calls, check, conversation, input, open, play, replies, send, server, signIn, wish } from "./stage.mjs";

/** Signs a new person in, in a browser of its own. */
async function person(name, role, options) {
  const { code } = await api("post", "/people", { name, role });
  return signIn(await open(options), code);
}

/** True if the page is wider than its window. */
const isTooWide = (page) => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);

/** Presses Tab until this has the focus. */
async function tabTo(page, locator) {
  await locator.first().waitFor();
  for (let presses = 0; presses < 80; presses += 1) {
    if (await locator.evaluateAll((elements) => elements.some((element) => element === document.activeElement))) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`Tab does not lead to ${locator}`);
}

await play({
  "a viewer finds nothing to press that would be refused": async () => {
    await wish("runner", { name: "laptop" });
    const page = await person("vera", "viewer");
    await page.getByText("You may only look").waitFor();
    check((await input(page).count()) === 0, "no input");
    await page.getByRole("link", { name: "Runners" }).click();
    await page.getByRole("heading", { name: "Runners", exact: true }).waitFor();
    check((await page.getByRole("button", { name: "Add a machine" }).count()) === 0, "no machine to add");
    check((await page.getByRole("link", { name: "Admin" }).count()) === 0, "no admin in the rail");
    await page.goto(`${server}/admin/people`);
    await page.getByText("viewer").first().waitFor();
    check((await page.getByRole("button", { name: /Invite/ }).count()) === 0, "nobody to invite");
    await page.context().close();
  },
  "a role that is taken away counts on a page that is open": async () => {
    const page = await person("adam", "admin");
    await page.goto(`${server}/admin/people`);
    await page.getByText("vera").first().waitFor();
    const { people } = await api("get", "/people");
    await api("put", `/people/${people.find(({ name }) => name === "adam").id}/role`, { role: "viewer" });
    await page.getByRole("button", { name: /Invite/ }).waitFor({ state: "hidden" });
    await page.context().close();
  },
  "everything is done by keyboard alone": async () => {
    const page = await (await open()).newPage();
    await page.goto(`${server}/sign-in`);
    await tabTo(page, page.getByRole("textbox", { name: "One-time code" }));
    await page.keyboard.type(await wish("code"));
    await page.keyboard.press("Enter");
    await input(page).waitFor();
    await replies(calls(["Shell", { command: "touch by-keyboard" }]), { text: "Without a mouse." });
    await tabTo(page, input(page));
    await page.keyboard.type("Say something.");
    await page.keyboard.press("Enter");
    const allow = page.getByRole("button", { name: "Allow once" });
    await allow.waitFor();
    await tabTo(page, allow);
    while (await allow.isVisible()) await page.keyboard.press("Enter");
    await conversation(page).getByText("Without a mouse.").waitFor();
    await tabTo(page, page.getByRole("link", { name: "Settings" }));
    await page.keyboard.press("g");
    await page.keyboard.press("s");
    await page.getByRole("heading", { name: "Settings" }).waitFor();
    await tabTo(page, page.getByRole("link", { name: "Agents" }).or(page.locator('a[href$="#agent"]')));
    await page.keyboard.press("Enter");
    await page.waitForURL(/#agent$/);
    await page.keyboard.press("Control+k");
    await page.keyboard.type("inbox");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/inbox$/);
    const light = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.keyboard.press("Control+k");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.type("switch theme");
    await page.keyboard.press("Enter");
    // Whatever theme the system has.
    await page.waitForFunction((light) => getComputedStyle(document.body).backgroundColor !== light, light);
    await page.keyboard.press("Control+k");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Escape");
    await page.getByRole("combobox").waitFor({ state: "hidden" });
    await page.context().close();
  },
  "a phone has all of it, and nothing is wider than its screen": async () => {
    const context = await open({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
    const page = await signIn(context);
    await replies(calls(["Shell", { command: "touch on-the-phone" }]), { text: "From the pocket." });
    await page.getByRole("button", { name: "New chat" }).click();
    await input(page).fill("Say something to the phone.");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    const allow = page.getByRole("button", { name: "Allow once" });
    await allow.waitFor();
    check(!(await isTooWide(page)), "the question is too wide");
    const { height } = await allow.boundingBox();
    check(height >= 44, `a finger needs 44 px, and the button has ${height}`);
    await answer(allow);
    await conversation(page).getByText("From the pocket.").waitFor();
    for (const path of ["/chat", "/inbox", "/runners", "/sandboxes", "/files", "/terminal", "/settings", "/settings#models", "/admin/people", "/admin/everyone", "/admin/audit", "/usage", "/status"]) {
      await page.goto(server + path);
      await page.getByRole("navigation").last().waitFor();
      await page.waitForLoadState("networkidle");
      check(!(await isTooWide(page)), `${path} is too wide`);
    }
    await context.close();
  },
  "a person whose browser speaks Chinese reads Chinese": async () => {
    const page = await signIn(await open({ locale: "zh-CN" }));
    check((await page.locator("html").getAttribute("lang")).startsWith("zh"), "the page says its language");
    await replies(calls(["Shell", { command: "touch 你好" }]), { text: "做完了。" });
    await send(page, "说点什么。");
    await answer(page.getByRole("button", { name: "允许一次" }));
    await conversation(page).getByText("做完了。").waitFor();
    await page.getByRole("link", { name: "运行器" }).click();
    await page.getByRole("heading", { name: "运行器", exact: true }).waitFor();
    await page.context().close();
  },
});
