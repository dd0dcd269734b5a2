// Extensions: a project's files are trusted once a person has seen what they do, and people bring their own.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { api, axe, calls, card, check, conversation, count, input, open, play, replies, send, server, signIn, untilReplied, wish } from "./stage.mjs";

const HOOK = "case $(cat) in *secret-push*) echo no >&2; exit 2;; esac";
const skill = (name, words) => `---\nname: ${name}\ndescription: ${words}\n---\nDo it.\n`;

const context = await open();
let page;
let folder;
let session;

async function write(root, files) {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(`${root}/${name.split("/").slice(0, -1).join("/")}`, { recursive: true });
    await writeFile(`${root}/${name}`, text);
  }
}
const sheet = () => page.getByRole("dialog", { name: "Extensions of this chat" });
const found = () => api("get", `/sessions/${session}/extensions`);
const section = (title) => page.locator("section").filter({ has: page.getByRole("heading", { name: title, exact: true }) });

await play({
  "a project's files say what they would do before a person trusts them": async () => {
    const workspace = await wish("runner", { name: "laptop" });
    await write(workspace, {
      ".claude/settings.json": JSON.stringify({ hooks: { PreToolUse: [{ matcher: "Bash", hooks: [{ type: "command", command: HOOK }] }] } }),
      ".mcp.json": JSON.stringify({ mcpServers: { db: { command: "./db-server", args: ["--all"] } } }),
      ".claude/skills/pdf/SKILL.md": skill("pdf", "Fills forms of this project"),
      ".claude/agents/broken.md": "---\nname: broken\n",
    });
    await api("put", "/extensions", { kind: "skill", name: "pdf", text: skill("pdf", "Fills any form") });
    page = await signIn(context);
    await replies({ text: "I am here." });
    await send(page, "Hello.");
    await conversation(page).getByText("I am here.").waitFor();
    session = new URL(page.url()).pathname.split("/").at(-1);
    await page.getByRole("button", { name: "Look at it: .claude/settings.json" }).press("Enter");
    await sheet().getByText(HOOK).waitFor();
    await sheet().getByText("./db-server --all").waitFor();
    await count(sheet().getByText("does nothing yet"), 2);
    await sheet().getByText("/pdf", { exact: true }).waitFor();
    await sheet().getByText("yours; in its place counts:").waitFor();
    await sheet().getByText("broken").first().waitFor();
    await axe(page, "the sheet of extensions");
  },
  "the text that was shown is trusted, and no other": async () => {
    await sheet().getByRole("button", { name: "Trust this text: .claude/settings.json" }).press("Enter");
    await sheet().getByText("trusted", { exact: true }).waitFor();
    await count(sheet().getByText("does nothing yet"), 1);
    const { hooks, servers } = await found();
    check(hooks[0].from.trusted === true && !servers[0].from.trusted, "only the hooks are trusted");
    await page.keyboard.press("Escape");
    await replies(calls(["Shell", { command: "echo secret-push" }]), { text: "It was kept back." });
    await send(page, "Push it.");
    await conversation(page).getByText("It was kept back.").waitFor();
    await page.getByRole("button", { name: "Extensions of this chat" }).click();
    await sheet().getByRole("button", { name: "Trust no more: .claude/settings.json" }).click();
    await count(sheet().getByText("does nothing yet"), 2);
    check(!(await found()).hooks[0].from.trusted, "it is trusted no more");
    await page.keyboard.press("Escape");
  },
  "a skill is a command that is completed": async () => {
    await replies({ text: "The form is filled." });
    await input(page).pressSequentially("/pd");
    await page.getByRole("option", { name: "/pdf" }).getByText("Fills forms of this project").waitFor();
    await input(page).press("Enter");
    await conversation(page).getByText("The form is filled.").waitFor();
    await conversation(page).getByText("/pdf", { exact: true }).first().waitFor();
  },
  "a person adds a tool server, whose values no page shows again": async () => {
    await page.goto(`${server}/settings#extensions`);
    await section("Your extensions").getByRole("button", { name: "Add" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name", { exact: true }).first().fill("tracker");
    await dialog.getByRole("radio", { name: "Program on the runner" }).click();
    await dialog.getByLabel("Command").fill(`./tracker --only "open issues"`);
    await dialog.getByRole("button", { name: "Add a variable" }).click();
    await dialog.getByLabel("Name", { exact: true }).last().fill("TRACKER_KEY");
    await dialog.getByLabel("Value of TRACKER_KEY").fill("never-shown-again");
    await axe(page, "the dialog that adds an extension");
    await dialog.getByRole("button", { name: "Add", exact: true }).click();
    await section("Your extensions").getByText("./tracker --only open issues").waitFor();
    await page.getByRole("button", { name: "What can be done with tracker" }).click();
    await page.getByRole("menuitem", { name: "Show" }).click();
    await page.getByRole("dialog").getByText("open issues").waitFor();
    const text = await page.locator("body").innerText();
    check(text.includes("TRACKER_KEY") && !text.includes("never-shown-again"), "the name alone is shown");
    await page.keyboard.press("Escape");
  },
  "a folder with a skill is added, updated after its difference was shown, given to everyone, and removed": async () => {
    folder = await mkdtemp(`${tmpdir()}/skills-`);
    await write(folder, { "notes/SKILL.md": skill("notes", "Writes notes"), "notes/forms/a.txt": "one\n" });
    await section("Your extensions").getByRole("button", { name: "Add" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Kind").selectOption("skill");
    await dialog.locator("input[type=file]").first().setInputFiles(`${folder}/notes`);
    await dialog.getByText("1 file beside it").waitFor();
    await dialog.getByRole("button", { name: "Add", exact: true }).click();
    await section("Your extensions").getByText("Writes notes").waitFor();

    await write(folder, { "notes/forms/a.txt": "two\n", "notes/forms/b.txt": "new\n" });
    const menu = async (deed) => {
      await section("Your extensions").getByRole("button", { name: "What can be done with notes" }).click();
      await page.getByRole("menuitem", { name: deed }).click();
    };
    await menu("Update…");
    await dialog.locator("input[type=file]").first().setInputFiles(`${folder}/notes`);
    await dialog.getByRole("region", { name: "forms/a.txt" }).getByText("two").waitFor();
    await dialog.getByRole("region", { name: "forms/b.txt" }).getByText("new").waitFor();
    await dialog.getByRole("button", { name: "Replace" }).click();
    await dialog.waitFor({ state: "detached" });

    await menu("Give to everyone…");
    await dialog.getByRole("button", { name: "Give to everyone" }).click();
    await section("For everyone").getByText("yours counts instead").waitFor();
    await menu("Remove");
    await dialog.getByRole("button", { name: "Remove" }).click();
    await section("For everyone").getByText("yours counts instead").waitFor({ state: "detached" });
    const { extensions } = await api("get", "/extensions");
    const notes = extensions.filter((one) => one.name === "notes");
    check(notes.length === 1 && notes[0].layer === "tenant" && notes[0].packed_bytes > 0, JSON.stringify(notes));
  },
  "an agent that works is opened and stopped from its card": async () => {
    await page.goto(`${server}/chat/${session}`);
    await replies(calls(["SubAgent", { description: "Look around", prompt: "Look." }]), { pieces: ["I look", null] }, { text: "The agent was stopped." });
    await send(page, "Have an agent look.");
    const agent = card(page, "Look around");
    await agent.getByText("at work").waitFor();
    await untilReplied(1);
    await agent.getByRole("button", { name: /^Stop / }).click();
    await conversation(page).getByText("The agent was stopped.").waitFor();
    await agent.getByRole("link").first().click();
    await page.getByText("works here: Look around.").waitFor();
  },
});
if (folder) await rm(folder, { recursive: true });
