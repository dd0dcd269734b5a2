// A world that is worth a picture: machines, people, chats, a question that waits, a task that runs.
import { DatabaseSync } from "node:sqlite";
import { answer, api, conversation, replies, send, server, wish } from "./stage.mjs";

/** The folder in which the agents of the pictures work. */
const FOLDER = process.env.PICTURES_FOLDER;

const CART = `"""The cart of the shop."""

from decimal import Decimal


def total(items, discounts):
    """The sum of all items, less the discounts in per cent."""
    amount = sum(item.price * item.count for item in items)
    for discount in discounts:
        amount -= amount * discount / 100
    return amount.quantize(Decimal("0.01"))


def shipping(amount):
    return Decimal("0") if amount >= 50 else Decimal("4.90")
`;
const TESTS = `#!/bin/sh
for name in total_of_one_item total_of_many_items one_discount two_discounts shipping_is_free shipping_costs; do
  sleep 0.1
  if [ $name = two_discounts ] && ! grep -q 'sum(discounts)' src/cart.py; then
    printf 'tests/test_cart.py::%s \\033[31mFAILED\\033[0m\\n' $name
    failed=1
  else
    printf 'tests/test_cart.py::%s \\033[32mPASSED\\033[0m\\n' $name
  fi
done
[ -z "$failed" ] || { printf '\\nE   expected 81.00, got 81.45\\n\\033[31m1 failed\\033[0m, 5 passed in 0.64s\\n'; exit 1; }
printf '\\n\\033[32m6 passed\\033[0m in 0.61s\\n'
`;
const SERVE = `#!/bin/sh
for n in $(seq 600); do
  printf '%s GET /cart 200 in %s ms\\n' "$(date +%T)" $((3 + n * 7 % 5))
  sleep 3
done
`;

const WORDS = {
  en: {
    fix: "The total is wrong for orders with two discounts. Find out why, and fix it.",
    look: "I'll reproduce it first, and read how the total is computed.",
    thoughts: "Two discounts of 10 % each should give 80 % of the sum if they add up, and 81 % if each counts on what the one before left. The test expects them to add up.",
    found: "The loop takes each discount from what the one before it left, so they do not add up. I'll sum them first.",
    todo: "[x] Reproduce the wrong total\n[x] Find where discounts are taken\n[~] Sum discounts before they are taken\n[ ] Look for the same mistake in invoices",
    fixed: "Fixed. Discounts now **add up** before they are taken from the sum:\n\n| order | before | now |\n|---|---:|---:|\n| one discount of 10 % | 90.00 | 90.00 |\n| two discounts of 10 % | 81.00 | 80.00 |\n\nAll six tests pass. `invoice.py` has a loop of the same kind; shall I change it as well?",
    deploy: "Bring the new version to staging",
    deployLook: "The tests pass and the image is built. This starts it on staging:",
    serve: "Start the development server and keep it running",
    serveLook: "I'll start it in the background, so that we can go on.",
    serving: "It runs as task 1 and answers on port 5173. I'll watch its log for errors.",
    others: ["Upgrade the base image to Debian 13", "Why is the nightly backup so slow?", "Write release notes for 2.4", "Rename the customer table", "Explain how invoices are numbered"],
    short: "Done: see the summary above.",
  },
  zh: {
    fix: "有两个折扣的订单总价不对。请找出原因并修复。",
    look: "我先重现问题，再看总价是怎么算的。",
    thoughts: "两个 10% 的折扣相加应为总额的 80%，逐个计算则为 81%。测试期望的是相加。",
    found: "循环在前一个折扣之后的余额上再打折，所以折扣没有相加。我先求和再扣除。",
    todo: "[x] 重现错误的总价\n[x] 找到扣除折扣的位置\n[~] 先求和再扣除折扣\n[ ] 在发票中查找同样的错误",
    fixed: "已修复。折扣现在**先相加**，再从总额中扣除：\n\n| 订单 | 之前 | 现在 |\n|---|---:|---:|\n| 一个 10% 的折扣 | 90.00 | 90.00 |\n| 两个 10% 的折扣 | 81.00 | 80.00 |\n\n六项测试全部通过。`invoice.py` 里也有同样的循环，要一起改吗？",
    deploy: "把新版本部署到预发布环境",
    deployLook: "测试通过，镜像已构建。下面的命令在预发布环境启动它：",
    serve: "启动开发服务器并保持运行",
    serveLook: "我在后台启动它，这样我们可以继续。",
    serving: "它作为任务 1 运行，在 5173 端口应答。我会留意它的日志。",
    others: ["把基础镜像升级到 Debian 13", "为什么夜间备份这么慢？", "撰写 2.4 版发布说明", "重命名客户表", "说明发票如何编号"],
    short: "完成：见上面的总结。",
  },
};

/** Machines, people and their keys. */
export async function machinesAndPeople() {
  const files = { "src/cart.py": CART, "tests/run": TESTS, "README.md": "# Shop\n\nA small shop.\n", "src/invoice.py": "def number(year, count):\n    return f'{year}-{count:05}'\n", "deploy/serve": SERVE, ".mcp.json": JSON.stringify({ mcpServers: { orders: { command: "npx", args: ["-y", "@shop/orders-mcp"] } } }), ".claude/skills/invoices/SKILL.md": "---\nname: invoices\ndescription: Makes and checks invoices of the shop. Use it for anything about their numbers.\n---\n", "deploy/staging.yml": "services:\n  shop:\n    image: shop:2.4\n" };
  const { mkdir, writeFile } = await import("node:fs/promises");
  for (const [name, text] of Object.entries(files)) {
    await mkdir(`${FOLDER}/${name.split("/").slice(0, -1).join("/")}`, { recursive: true });
    await writeFile(`${FOLDER}/${name}`, text, { mode: text.startsWith("#!") ? 0o755 : 0o644 });
  }
  for (const [name, folder] of [["laptop", FOLDER], ["buildbox", ""], ["old-desktop", ""]]) {
    const { token } = await api("post", "/join-tokens", { name });
    await wish("paste", { name, folder, line: `gantry-runner enrol --server ${server} ${token}` });
    await wish("until_online", { name });
  }
  await wish("kill_runner", { name: "old-desktop" });
  await api("put", "/me/runner", { runner: "laptop" });
  for (const [name, role] of [["maria", "admin"], ["chen", "member"], ["sam", "viewer"]]) await api("post", "/people", { name, role });
  await api("put", "/extensions", { kind: "skill", name: "pdf", source: "https://example.org/pdf.tar.gz", text: "---\nname: pdf\ndescription: Fills forms and reads tables of PDF files.\n---\n" });
  await api("put", "/extensions", { kind: "agent", name: "reviewer", for_everyone: true, text: "---\nname: reviewer\ndescription: Reviews a change before it is merged.\n---\nLook for mistakes.\n" });
  await api("post", "/keys", { name: "nightly build", scopes: ["chat", "read"] });
}

/** Chats, the last of which waits for an answer. Gives their addresses. */
export async function chats(page, language) {
  const words = WORDS[language];
  const allow = (text) => answer(page.getByRole("region", { name: /^(Question of the agent|智能体的问题|智能体的提问)$/ }).filter({ hasText: text }).getByRole("button").first());
  const begin = async (text) => {
    await page.goto(`${server}/chat`);
    await send(page, text);
    await page.waitForURL(/\/chat\/ses_/);
    return new URL(page.url()).pathname;
  };
  const said = (text) => conversation(page).getByText(text).first().waitFor();
  for (const other of words.others.toReversed()) {
    await replies({ text: words.short, input: 5200, output: 400 });
    await begin(other);
    await said(words.short);
  }
  await replies({ text: words.serveLook, calls: [["Shell", { command: "deploy/serve --port 5173", background: true }]], input: 4100, output: 220 }, { text: words.serving, input: 4300, output: 60 });
  const serve = await begin(words.serve);
  await allow("deploy/serve");
  await said(words.serving);
  await replies(
    { thoughts: words.thoughts, text: words.look, calls: [["Read", { path: "src/cart.py" }], ["Read", { path: "tests/run" }], ["Shell", { command: "tests/run" }]], input: 8200, output: 310 },
    { text: words.found, calls: [["todo_write", { list: words.todo }], ["Edit", { path: "src/cart.py", old: "    for discount in discounts:\n        amount -= amount * discount / 100\n    return", new: "    amount -= amount * sum(discounts) / 100\n    return" }]], input: 9900, output: 420 },
    { calls: [["Shell", { command: "tests/run" }]], input: 10400, output: 80 },
    { text: words.fixed, input: 11200, output: 260 },
  );
  const fix = await begin(words.fix);
  await allow("tests/run");
  await allow("src/cart.py");
  await allow("tests/run");
  await said("80.00");
  await replies({ text: words.deployLook, calls: [["Shell", { command: "docker compose --file deploy/staging.yml up --detach --build" }]], input: 6100, output: 140 });
  const deploy = await begin(words.deploy);
  await page.getByRole("region", { name: /./ }).filter({ hasText: "docker compose" }).first().waitFor();
  return { serve, fix, deploy };
}

/** Adds calls of the last weeks to the chats that no picture shows: the sums of the others are those of their turns. */
export async function past(shown) {
  const database = new DatabaseSync(await wish("database"));
  database.exec("PRAGMA busy_timeout = 5000");
  const columns = "tenant_id, user_id, session_id, turn_id, step, attempt, provider, account, whose, cache_written, thoughts, duration_ms, outcome";
  database
    .prepare(`WITH RECURSIVE days (day) AS (SELECT 0 UNION ALL SELECT day + 1 FROM days WHERE day < 26)
      INSERT INTO model_calls (${columns}, id, at, model, input, cached, output)
      SELECT ${columns}, id || day, at - day * 86400000000, CASE abs(random()) % 4 WHEN 0 THEN 'gpt-5-mini' ELSE model END,
        input * (2 + abs(random()) % 40), 0, output * (3 + abs(random()) % 20)
      FROM model_calls, days WHERE session_id NOT IN (?, ?, ?) AND day % 7 NOT IN (1, 2) AND abs(random()) % 5 > 1`)
    .run(...Object.values(shown).map((path) => path.split("/").at(-1)));
  database.exec("UPDATE model_calls SET cached = input * 7 / 10");
  database.exec("UPDATE model_calls SET cost_micros = (input - cached) * 5 / 4 + cached / 8 + output * 10");
  database.close();
}
