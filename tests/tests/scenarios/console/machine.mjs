// A second machine: enrolled by the dialog, chosen, and used in a chat whose commands are approved and stopped.
import { answer, api, calls, card, check, conversation, count, open, play, replies, send, signIn, wish } from "./stage.mjs";

const context = await open();
let page;

await play({
  "the dialog gives a line, and sees the machine come": async () => {
    await wish("runner", { name: "laptop" });
    page = await signIn(context);
    await page.getByRole("link", { name: "Runners" }).click();
    await page.getByRole("button", { name: "Add a machine" }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("buildbox");
    await dialog.getByRole("button", { name: "Make the line" }).click();
    await dialog.getByRole("tab", { name: "Gantry is installed" }).click();
    await dialog.getByText("Waiting for the machine…").waitFor();
    const line = await dialog.locator("code").filter({ hasText: "gantry-runner enrol" }).textContent();
    // The stage starts the runner itself.
    await wish("paste", { name: "buildbox", line: line.replace(" && gantry-runner run", "") });
    await dialog.getByText("buildbox is connected.").waitFor();
    await dialog.getByRole("button", { name: "Use buildbox" }).click();
    await page.getByText("buildbox is in use from the next message on.").waitFor();
    check((await api("get", "/runners")).runners.length === 2, "two machines");
  },
  "a command is approved in the chat, and its card says where it ran": async () => {
    await replies(calls(["Shell", { command: "touch here && echo on-$((40 + 2))" }]), { text: "All done." });
    await page.getByRole("link", { name: "Chat", exact: true }).click();
    await send(page, "Say where you are.");
    const question = page.getByRole("region", { name: "Question of the agent" });
    await question.getByText("touch here && echo on-$((40 + 2))").waitFor();
    await answer(question.getByRole("button", { name: "Allow once" }));
    await conversation(page).getByText("All done.").waitFor();
    const ran = card(page, "echo on-");
    await ran.getByText("buildbox").first().waitFor();
    await ran.getByText("exit 0").waitFor();
    await ran.getByRole("button", { expanded: false }).click();
    await ran.getByText("on-42").waitFor();
  },
  "another command is approved in the inbox": async () => {
    await replies(calls(["Shell", { command: "touch approved" }]), { text: "It is there." });
    await send(page, "Make a file.");
    await page.getByRole("region", { name: "Question of the agent" }).waitFor();
    await page.getByRole("link", { name: /^Inbox/ }).click();
    await page.getByText("1 waits for you").waitFor();
    await answer(page.getByRole("button", { name: "Allow once" }));
    await page.getByText("Nothing waits for you").waitFor();
    await page.goBack();
    await conversation(page).getByText("It is there.").waitFor();
    check((await wish("file", { name: "buildbox", path: "approved" })) === "", "the command ran on buildbox");
  },
  "a command that runs is stopped alone, on its machine too": async () => {
    await replies(calls(["Shell", { command: "echo begun; sleep 1000; touch too-late" }]), { text: "It was stopped." });
    await send(page, "Wait for long.");
    await answer(page.getByRole("button", { name: "Allow once" }));
    await page.getByText("begun", { exact: true }).waitFor();
    await card(page, "sleep 1000").getByRole("button", { name: "Stop" }).click();
    await card(page, "sleep 1000").getByText("stopped", { exact: true }).waitFor();
    await conversation(page).getByText("It was stopped.").waitFor();
    await count(page.getByRole("button", { name: "Send", exact: true }), 1);
    const { operations } = await api("get", "/operations?state=open");
    check(operations.length === 0, `something runs: ${JSON.stringify(operations)}`);
  },
});
