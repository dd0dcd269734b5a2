// A full-screen program in the terminal page: it is resized, and is there again after a reload.
import { check, open, play, server, signIn, wish } from "./stage.mjs";

const PROGRAM = `
const draw = () => process.stdout.write("\\x1b[H\\x1b[2Jsize " + process.stdout.columns + "x" + process.stdout.rows + " keys " + keys + " end");
let keys = "";
process.stdout.write("\\x1b[?1049h");
process.stdin.setRawMode(true).on("data", (data) => {
  if (String(data) === "q") { process.stdout.write("\\x1b[?1049l"); process.exit(); }
  keys += data;
  draw();
});
process.stdout.on("resize", draw);
draw();
`;

const context = await open();
let page;

/** Waits until the screen shows something like this; gives what it found. */
async function shown(pattern) {
  await page.waitForFunction(([source]) => new RegExp(source).test(document.querySelector(".xterm-rows")?.textContent?.replaceAll("\u00a0", " ") ?? ""), [pattern.source]);
  const text = await page.locator(".xterm-rows").textContent();
  return text.replaceAll("\u00a0", " ").match(pattern);
}

await play({
  "a shell opens, and runs what is typed": async () => {
    await wish("runner", { name: "laptop" });
    await wish("write_file", { name: "laptop", path: "screen.cjs", text: PROGRAM });
    page = await signIn(context);
    await page.goto(`${server}/terminal`);
    await page.getByRole("button", { name: "Open a shell on laptop" }).click();
    await page.getByRole("tab", { name: /laptop/ }).waitFor();
    await page.locator(".xterm-helper-textarea").focus();
    await page.keyboard.type("echo typed-$((6 * 7))\n");
    await shown(/typed-42/);
  },
  "a full-screen program hears of the window's size": async () => {
    await page.keyboard.type("node screen.cjs\n");
    const [, columns] = await shown(/size (\d+)x\d+ keys +end/);
    await page.setViewportSize({ width: 900, height: 600 });
    await page.waitForFunction(([before]) => {
      const now = /size (\d+)x/.exec(document.querySelector(".xterm-rows")?.textContent?.replaceAll("\u00a0", " ") ?? "");
      return now && now[1] !== before;
    }, [columns]);
    await page.keyboard.type("abc");
    await shown(/keys abc end/);
  },
  "it is there again after a reload, and hears each key once": async () => {
    await page.reload();
    await shown(/size \d+x\d+ keys abc end/);
    await page.locator(".xterm-helper-textarea").focus();
    await page.keyboard.type("def");
    await shown(/keys abcdef end/);
    await page.keyboard.type("q");
    await shown(/typed-42/);
    await page.keyboard.type("exit\n");
    await page.getByText("The shell has ended").waitFor();
    const [open] = await page.getByRole("tab").all();
    check(open, "its tab stays until it is closed");
  },
});
