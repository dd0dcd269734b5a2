// A person's browser: pages of the server and of others try to sign in, to ask, and to follow. Prints one
// JSON object with what came of it. Reads from the environment, because a process list shows arguments.
import http from "node:http";
const { SERVER, CODE, PLAYWRIGHT, CHROMIUM } = process.env;
const { chromium } = await import(`${PLAYWRIGHT}/index.mjs`);

// A page that is not the server's, on this machine.
const other = http.createServer((_, answer) => {
  answer.setHeader("content-type", "text/html");
  answer.end("<p>another page");
});
await new Promise((listens) => other.listen(0, "127.0.0.1", listens));
const { port } = other.address();
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
// The pages of today's server forbid themselves all scripts; the test is the script.
const context = await browser.newContext({ bypassCSP: true });

const ask = (page, method, path, body) =>
  page.evaluate(
    async ([url, method, body]) => {
      const headers = body ? { "content-type": "application/json" } : {};
      const answer = await fetch(url, { method, headers, body: body && JSON.stringify(body) });
      const text = await answer.text();
      return { status: answer.status, body: text ? JSON.parse(text) : null };
    },
    [SERVER + path, method, body],
  );
const open = (page, query) =>
  page.evaluate(
    (url) =>
      new Promise((says) => {
        const socket = new WebSocket(url);
        socket.onopen = () => says("open");
        socket.onerror = () => says("refused");
      }),
    SERVER.replace("http", "ws") + "/api/v1/stream" + query,
  );
const ticket = async (page) => (await ask(page, "POST", "/api/v1/stream-tickets", {})).body.ticket;

const said = {};
const own = await context.newPage();
await own.goto(SERVER + "/shared/nothing");
said.before = (await ask(own, "GET", "/api/v1/me")).status;
said.signIn = (await ask(own, "POST", "/api/v1/browser/sign-in", { code: CODE, device: "Chromium" })).status;
said.scriptSees = await own.evaluate(() => document.cookie);
said.kept = (await context.cookies()).map(({ name, httpOnly, secure, sameSite }) => ({ name, httpOnly, secure, sameSite }));
said.me = (await ask(own, "GET", "/api/v1/me")).body.user?.name;
said.session = (await ask(own, "POST", "/api/v1/sessions", {})).status;
const once = await ticket(own);
said.stream = await open(own, "?ticket=" + once);
said.streamAgain = await open(own, "?ticket=" + once);
said.streamWithCookie = await open(own, "");

// Of the same site, so the cookie goes along; and of another one.
for (const [name, host] of [["neighbour", "127.0.0.1"], ["stranger", "localhost"]]) {
  const page = await context.newPage();
  // What the server answers, also where the browser keeps it from the page.
  const [asked, answered, devtools] = [new Set(), new Map(), await context.newCDPSession(page)];
  const statuses = () => [...asked].filter((id) => answered.has(id)).map((id) => answered.get(id));
  await devtools.send("Network.enable");
  // Both are told some time later, in either order.
  const allHeard = new Promise((hears) => {
    const look = () => statuses().length >= 3 && hears();
    devtools.on("Network.requestWillBeSent", (told) => {
      if (told.request.url.startsWith(SERVER)) asked.add(told.requestId);
      look();
    });
    devtools.on("Network.responseReceivedExtraInfo", (told) => {
      answered.set(told.requestId, told.statusCode);
      look();
    });
  });
  await page.goto(`http://${host}:${port}/`);
  const reads = await page.evaluate(async (server) => {
    for (const [path, method] of [["/api/v1/me", "GET"], ["/api/v1/sessions", "POST"], ["/api/v1/browser/sign-out", "POST"]]) {
      const body = method === "POST" ? "{}" : undefined;
      await fetch(server + path, { method, body, mode: "no-cors", credentials: "include" }).catch(() => {});
    }
    return fetch(server + "/api/v1/me", { credentials: "include" }).then((a) => a.text(), () => "nothing");
  }, SERVER);
  await allHeard;
  said[name] = { statuses: statuses(), reads, stream: await open(page, "?ticket=" + (await ticket(own))) };
}
const typed = await context.newPage();
said.typed = (await typed.goto(SERVER + "/api/v1/me")).status();
said.sessions = (await ask(own, "GET", "/api/v1/sessions")).body.sessions.length;
said.signOut = (await ask(own, "POST", "/api/v1/browser/sign-out")).status;
said.after = (await ask(own, "GET", "/api/v1/me")).status;
said.left = (await context.cookies()).length;
await browser.close();
other.close();
console.log(JSON.stringify(said));
