// What a conversation shows stays whole: after reloads, without a network, after the server's death, in two tabs, and
// when the sign-in ends.
import { answer, api, calls, check, input, open, play, replies, send, signIn, wish } from "./stage.mjs";

const context = await open();
let page;

/** The words of the conversation, as a person reads them. */
const words = (of) => of.getByRole("region", { name: "Conversation" }).innerText();

/** Waits until the conversation has all of these, in this order, and each once. */
async function once(of, ...texts) {
  for (const text of texts) await of.getByRole("region", { name: "Conversation" }).getByText(text).first().waitFor();
  const shown = await words(of);
  const places = texts.map((text) => shown.indexOf(text));
  check(texts.every((text, place) => shown.split(text).length === 2 && (place === 0 || places[place] > places[place - 1])), `not once and in order: ${texts}\n${shown}`);
}

/** The bar that says that the connection is lost. */
const bar = (of) => of.getByRole("status").filter({ hasText: "Reconnecting…" });

await play({
  "a reload in mid-stream loses nothing, and shows nothing twice": async () => {
    await wish("runner", { name: "laptop" });
    page = await signIn(context);
    await replies({ pieces: ["alpha ", null, "beta ", null, "gamma"] });
    await send(page, "Tell me letters.");
    await once(page, "Tell me letters.", "alpha");
    await page.reload();
    await once(page, "Tell me letters.", "alpha");
    await wish("release");
    await once(page, "alpha", "beta");
    await page.reload();
    await once(page, "alpha", "beta");
    await wish("release");
    await once(page, "Tell me letters.", "alpha", "beta", "gamma");
  },
  "a page without a network says so, and is right again after it": async () => {
    await replies({ pieces: ["delta ", null, "epsilon"] });
    await send(page, "Go on.");
    await once(page, "gamma", "Go on.", "delta");
    await wish("cut_network");
    await bar(page).waitFor();
    await wish("release");
    await send(page, "This waits for the network.");
    await replies({ text: "It came." });
    await wish("mend_network");
    await bar(page).waitFor({ state: "hidden" });
    await once(page, "delta", "epsilon", "This waits for the network.", "It came.");
  },
  "a server that is killed and started again goes on where it was": async () => {
    await replies({ pieces: ["zeta ", null, "eta"] }, { text: "zeta eta theta" });
    await send(page, "More of them.");
    await once(page, "More of them.", "zeta");
    await wish("kill_server");
    await bar(page).waitFor();
    await wish("start_server");
    await bar(page).waitFor({ state: "hidden" });
    await once(page, "It came.", "More of them.", "zeta eta theta");
    await page.reload();
    await once(page, "It came.", "More of them.", "zeta eta theta");
  },
  "two tabs show the same, and a question is answered once": async () => {
    const other = await context.newPage();
    await other.goto(page.url());
    await once(other, "zeta eta theta");
    await replies(calls(["Shell", { command: "touch of-two-tabs" }]), { text: "Both have it." });
    await send(page, "Run something.");
    await once(other, "Run something.");
    await page.getByRole("button", { name: "Allow once" }).waitFor();
    await answer(other.getByRole("button", { name: "Allow once" }));
    for (const tab of [page, other]) {
      await once(tab, "Run something.", "touch of-two-tabs", "Both have it.");
      await tab.getByRole("button", { name: "Allow once" }).waitFor({ state: "hidden" });
    }
    await other.close();
  },
  "a sign-in that ends in mid-stream loses nothing typed": async () => {
    await replies({ pieces: ["iota ", null, "kappa"] });
    await send(page, "The last ones.");
    await once(page, "The last ones.", "iota");
    await input(page).fill("Not sent yet");
    const { keys } = await api("get", "/keys");
    const browsers = keys.filter(({ kind, name }) => kind === "browser" || /Chrom/.test(name));
    check(browsers.length === 1, JSON.stringify(keys));
    await api("delete", `/keys/${browsers[0].id}`);
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Your sign-in in this browser has ended.").waitFor();
    await dialog.getByRole("textbox").fill(await wish("code"));
    await dialog.getByRole("button", { name: "Sign in" }).click();
    await dialog.waitFor({ state: "hidden" });
    check((await input(page).inputValue()) === "Not sent yet", "the draft is there");
    await page.getByText("Stopped: the sign-in was ended").waitFor();
    await replies({ text: "Welcome back." });
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await once(page, "The last ones.", "Not sent yet", "Welcome back.");
  },
});
