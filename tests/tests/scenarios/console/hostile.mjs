// What strangers write is only ever text: Markdown, escape sequences, names.
import { answer, api, calls, card, check, conversation, open, play, replies, send, server, signIn, wish } from "./stage.mjs";

const IMAGE = `<img src="x" onerror="alert('image')">`;
const MARKDOWN = `# Trap ${IMAGE}

<script>alert("script")</script><svg onload="alert('svg')"></svg><iframe src="https://stranger.example/frame"></iframe>
<style>body { display: none }</style><a href="javascript:alert('raw')">raw</a>

[run](javascript:alert('link')) [data](data:text/html,<script>alert('data')</script>) [other](https://stranger.example/page)
![remote](https://stranger.example/track.png) ![file](file:///etc/passwd)

| ${IMAGE} | b |
|---|---|
| [x](vbscript:alert('cell')) | \u202etxt.exe |

\`\`\`html
<script>alert("fence")</script>
\`\`\`

The end of it.`;

const context = await open();
let page;

/** No element of the page can do anything for a stranger. */
async function isHarmless(where) {
  const found = await page.evaluate(() => {
    const bad = (element) => {
      const link = element.getAttribute("href") ?? element.getAttribute("src") ?? "";
      const own = link === "" || link.startsWith("/") || link.startsWith("#") || link.startsWith("blob:") || link.startsWith(location.origin);
      if (/^\s*(javascript|vbscript|data:text)/i.test(link)) return true;
      if (element.matches("img, iframe, script, object, embed") && !own && !link.startsWith("data:image/svg")) return true;
      return [...element.attributes].some(({ name }) => name.startsWith("on"));
    };
    return [...document.querySelectorAll("*")].filter(bad).map((element) => element.outerHTML.slice(0, 200));
  });
  check(found.length === 0, `${where}: ${found.join("\n")}`);
}

await play({
  "hostile Markdown is text": async () => {
    await wish("runner", { name: "laptop" });
    page = await signIn(context);
    await replies({ thoughts: MARKDOWN, text: MARKDOWN });
    await send(page, `Say it. ${IMAGE}`);
    await conversation(page).getByText("The end of it.").last().waitFor();
    await isHarmless("an answer");
    check(await page.getByText(`alert("fence")`).isVisible(), "what is in a fence is shown as it is");
    for (const name of ["run", "data", "other"]) {
      const link = page.getByRole("link", { name, exact: true });
      if ((await link.count()) > 0) check(/noopener|noreferrer/.test((await link.getAttribute("rel")) ?? ""), `the link ${name} tells nobody where it was`);
    }
  },
  "hostile output and arguments are text": async () => {
    const output = String.raw`touch t; printf '\033]8;;javascript:alert(1)\033\\link\033]8;;\033\\ \033]0;title\007 \033[31m<img src=x onerror=alert(2)>\033[0m \033[2J\033[999;999H \033]52;c;aGVsbG8=\007 \033P+q\033\\ done-%s\n' writing`;
    await replies(calls(["Shell", { command: `${output} # ${IMAGE}` }], ["Write", { path: `${IMAGE.replaceAll("/", "")}.md`, content: MARKDOWN }]), { text: "Both are there." });
    await send(page, "Write it.");
    for (const words of ["touch t", "Trap"]) {
      const question = page.getByRole("region", { name: "Question of the agent" }).filter({ hasText: words });
      await question.waitFor();
      await isHarmless("a question");
      await answer(question.getByRole("button", { name: "Allow once" }));
    }
    await conversation(page).getByText("Both are there.").waitFor();
    const ran = card(page, "touch t");
    await ran.getByRole("button", { expanded: false }).first().click();
    await ran.getByText("done-writing").first().waitFor();
    await isHarmless("a tool card");
    check((await page.title()) !== "title", "output does not name the page");
  },
  "hostile names of chats, files and machines are text": async () => {
    const session = page.url().match(/ses_\w+/)[0];
    await api("patch", "/sessions", { sessions: [session], title: IMAGE }).catch(() => api("patch", `/sessions/${session}`, { title: IMAGE }));
    await page.getByRole("heading", { name: IMAGE }).first().waitFor();
    await isHarmless("the list of chats");
    await wish("write_file", { name: "laptop", path: "\u202egnp.<b onclick=alert(1)>x", text: MARKDOWN });
    await wish("write_file", { name: "laptop", path: "page.html", text: "<script>alert('page')</script>" });
    await wish("write_file", { name: "laptop", path: "picture.svg", text: "<svg xmlns='http://www.w3.org/2000/svg' onload=\"alert('svg')\"><script>alert('svg')</script></svg>" });
    await page.goto(`${server}/files`);
    for (const name of ["page.html", "picture.svg"]) {
      await page.getByRole("button", { name }).first().click();
      await page.getByRole("dialog").waitFor();
      await isHarmless(`the file ${name}`);
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "hidden" });
    }
    await isHarmless("a folder");
  },
  "an address cannot lead a person elsewhere after the sign-in": async () => {
    for (const next of ["//stranger.example/", "https://stranger.example/", "/\\stranger.example"]) {
      await page.goto(`${server}/sign-in?next=${encodeURIComponent(next)}`);
      await page.getByRole("main").getByRole("textbox").fill(await wish("code"));
      await page.keyboard.press("Enter");
      await page.waitForURL((url) => url.origin === server && url.pathname === "/chat");
    }
  },
});
