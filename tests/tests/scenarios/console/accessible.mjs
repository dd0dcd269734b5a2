// What axe finds on every page, in both themes: nothing serious.
import { answer, api, axe, calls, open, play, replies, send, server, signIn, wish } from "./stage.mjs";

const PATHS = [
  "/chat", "/inbox", "/runners", "/runners?enrol=1", "/sandboxes", "/files", "/terminal", "/admin/people", "/admin/everyone", "/admin/audit", "/usage", "/status",
  ...["runner", "models", "agent", "rules", "extensions", "appearance", "notifications", "keys", "sign-ins", "account"].map((part) => `/settings#${part}`),
];
const MARKDOWN = "# Title\n\nA [link](https://example.org), `code`, **bold**.\n\n```rust\nfn main() {}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- [ ] open\n- [x] done";

const context = await open({ viewport: { width: 1280, height: 1000 } });
let page;
let chat;

const parts = {
  "there is a world to look at": async () => {
    await wish("runner", { name: "laptop" });
    await api("post", "/people", { name: "vera", role: "viewer" });
    page = await context.newPage();
    await page.goto(`${server}/sign-in`);
    await page.getByRole("textbox").waitFor();
    await axe(page, "/sign-in");
    page = await signIn(context);
    await replies(calls(["Write", { path: "a.txt", content: "one\ntwo\n" }], ["Shell", { command: "printf '\\033[31mred\\033[0m\\n'; exit 3" }]), { thoughts: "Let me think.", text: MARKDOWN }, calls(["Shell", { command: "make deploy" }]));
    await send(page, "Do something.");
    for (const words of ["a.txt"]) {
      await answer(page.getByRole("region", { name: "Question of the agent" }).filter({ hasText: words }).getByRole("button", { name: "Allow once" }));
    }
    await page.getByRole("heading", { name: "Title" }).waitFor();
    await send(page, "Now deploy it.");
    await page.getByRole("button", { name: "Allow once" }).waitFor();
    chat = new URL(page.url()).pathname;
  },
};
for (const scheme of ["light", "dark"]) {
  parts[`axe finds nothing serious on any page in the ${scheme} theme`] = async () => {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    for (const path of [chat, ...PATHS]) {
      await page.goto(server + path);
      await page.locator("main").first().waitFor();
      await page.waitForLoadState("networkidle");
      await axe(page, `${path} (${scheme})`, { colours: scheme === "dark" });
    }
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").waitFor();
    await axe(page, `the palette (${scheme})`, { colours: scheme === "dark" });
  };
}
await play(parts);
