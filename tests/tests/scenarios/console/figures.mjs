// The console's figures on this machine, told and not judged: how long a long chat takes to open, the longest task
// of the main thread while text streams, the memory that it takes, and what a terminal does.
import { api, calls, open, play, replies, send, server, signIn, wish } from "./stage.mjs";

const EVENTS = 5000;
/** Pieces of text each second, and for how long. */
const RATE = 200;
const STREAM_S = Number(process.env.FIGURES_STREAM_S ?? 60);
const OUTPUT_BYTES = 50_000_000;
const KEYS = 200;
/** The most events of one answer. */
const PAGE = 500;

const context = await open();
let page;
let developer;

const tell = (what, ...values) => console.error(`figure: ${what}:`, ...values);
const middle = (values, share = 0.5) => values.toSorted((a, b) => a - b)[Math.floor(values.length * share)].toFixed(1);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The tasks of the main thread that took more than 50 ms since the last call, in milliseconds. */
const longTasks = () => page.evaluate(() => (window.longTasks ?? []).splice(0));

/** The bytes that scripts hold after all garbage is gone. */
async function heap() {
  await developer.send("HeapProfiler.collectGarbage");
  return (await developer.send("Runtime.getHeapUsage")).usedSize;
}

const shellShows = (text) => page.waitForFunction((text) => document.querySelector(".xterm-rows")?.textContent?.replaceAll("\u00a0", " ").includes(text), text, { timeout: 120_000 });

await play({
  "a chat with many events opens": async () => {
    await wish("runner", { name: "laptop" });
    await wish("write_file", { name: "laptop", path: "notes.txt", text: "one\ntwo\nthree\n" });
    page = await signIn(context);
    developer = await context.newCDPSession(page);
    await context.addInitScript(() => {
      window.longTasks = [];
      new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((entry) => Math.round(entry.duration)))).observe({ type: "longtask" });
    });
    let events = 0;
    for (let round = 0; events < EVENTS; round++) {
      const reads = Array.from({ length: 6 }, (_, step) => calls(...Array.from({ length: 24 }, (_, call) => ["Read", { path: "notes.txt", max_lines: step * 24 + call + 1 }])));
      await replies(...reads, { text: `That was round ${round}: **three** lines, as before.\n\n- one\n- two\n` });
      await send(page, `Read it again, ${round}.`);
      await page.getByText(`That was round ${round}:`).first().waitFor();
      await page.waitForURL(/ses_/);
      const session = page.url().split("/").pop();
      for (let found = PAGE; found === PAGE; events += found) {
        found = (await api("get", `/sessions/${session}/events?after=${events}&limit=${PAGE}`)).events.length;
      }
    }
    const last = page.getByRole("region", { name: "Conversation" }).getByText("That was round").last();
    const took = [];
    for (let time = 0; time < 9; time++) {
      const since = performance.now();
      await page.reload();
      await last.waitFor();
      took.push(performance.now() - since);
    }
    tell(`a chat of ${EVENTS} events opens, ms`, "p50", middle(took), "longest", middle(took, 0.99), "tasks over 50 ms at the last time", await longTasks());
  },
  "text streams": async () => {
    await page.goto(`${server}/chat?new=true`);
    const words = Array.from({ length: RATE * STREAM_S }, (_, at) => [at % 40 === 39 ? ".\n\n" : at % 200 === 7 ? "`code` " : "word ", null]).flat();
    await replies({ pieces: ["Here it comes. ", null, ...words, "The end."] });
    await send(page, "Tell me much.");
    await page.getByText("Here it comes.").first().waitFor();
    await longTasks();
    const before = await heap();
    const since = performance.now();
    let ended = false;
    const end = page.getByText("The end.").first().waitFor({ timeout: 2000 * STREAM_S }).then(() => (ended = true));
    for (let piece = 0; !ended; piece++) {
      const early = since + (piece * 1000) / RATE - performance.now();
      if (early > 0) await pause(early);
      await wish("release");
      if (piece % (RATE * 60) === RATE * 60 - 1) tell(`heap after ${Math.round((performance.now() - since) / 1000)} s, MB`, ((await heap()) / 1e6).toFixed(1));
    }
    await end;
    const rate = words.length / 2 / ((performance.now() - since) / 1000);
    tell(`${rate.toFixed(0)} pieces a second for ${STREAM_S} s: tasks over 50 ms`, await longTasks());
    tell("heap before and after, MB", (before / 1e6).toFixed(1), ((await heap()) / 1e6).toFixed(1));
  },
  "a terminal takes much output, and echoes keys": async () => {
    await page.goto(`${server}/terminal`);
    await page.getByRole("button", { name: "Open a shell on laptop" }).click();
    await page.locator(".xterm-helper-textarea").focus();
    await page.keyboard.type("PS1='> '; echo ready-$((6 * 7))\n");
    await shellShows("ready-42");
    await page.keyboard.type("cat\n");
    await pause(1000);
    const sent = [];
    const echoed = [];
    developer.on("Network.webSocketFrameSent", ({ timestamp }) => sent.push(timestamp));
    developer.on("Network.webSocketFrameReceived", ({ timestamp, response }) => response.opcode === 2 && echoed.push(timestamp));
    await developer.send("Network.enable");
    await page.evaluate(() => {
      window.painted = [];
      let pressed = 0;
      addEventListener("keydown", () => (pressed = performance.now()), true);
      new MutationObserver(() => {
        if (pressed) window.painted.push(performance.now() - pressed);
        pressed = 0;
      }).observe(document.querySelector(".xterm-rows"), { subtree: true, childList: true, characterData: true });
    });
    for (let key = 0; key < KEYS; key++) {
      await page.keyboard.press("abcdefgh"[key % 8]);
      await pause(40);
    }
    const wire = sent.flatMap((at) => echoed.filter((echo) => echo > at).slice(0, 1).map((echo) => (echo - at) * 1000));
    const painted = await page.evaluate(() => window.painted);
    tell("echo of a key over the wire, ms", "p50", middle(wire), "p99", middle(wire, 0.99), "of", wire.length);
    tell("echo of a key on the screen, ms", "p50", middle(painted), "p99", middle(painted, 0.99), "of", painted.length);
    await developer.send("Network.disable");
    await page.keyboard.press("Control+c");
    await longTasks();
    const since = performance.now();
    await page.keyboard.type(`yes 0123456789012345678901234567890123456789012345678901234567890123456789 | head -c ${OUTPUT_BYTES}; echo; echo end-$((6 * 7))\n`);
    await shellShows("end-42");
    tell(`${OUTPUT_BYTES / 1e6} MB in a terminal, s`, ((performance.now() - since) / 1000).toFixed(1), "tasks over 50 ms", await longTasks());
  },
});
