// Runs the conformance suite of MCP against a server, with the scenarios that each revision requires. Says which checks
// failed: {revision: {scenario: [check]}}. The suite knows no credential, so a door before the server adds it.
import { execFile } from "node:child_process";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";

const { MCP_URL, TOKEN, SUITE, REVISIONS } = process.env;
const server = new URL(MCP_URL);

const door = createServer((asked, answer) => {
  const headers = { ...asked.headers, authorization: `Bearer ${TOKEN}` };
  const onward = request({ host: server.hostname, port: server.port, path: asked.url, method: asked.method, headers }, (answered) => {
    answer.writeHead(answered.statusCode, answered.headers);
    answered.pipe(answer);
  });
  onward.on("error", () => answer.destroy());
  answer.on("close", () => onward.destroy());
  asked.pipe(onward);
});
await new Promise((listening) => door.listen(0, "127.0.0.1", listening));
const url = `http://127.0.0.1:${door.address().port}${server.pathname}`;

async function failed(revision) {
  const folder = await mkdtemp(`${tmpdir()}/conformance-`);
  const words = ["server", "--url", url, "--requirements", revision, "--output-dir", folder];
  // It ends with 1 where a check failed.
  const said = await new Promise((ended) => execFile(process.execPath, [`${SUITE}/node_modules/@modelcontextprotocol/conformance/dist/index.js`, ...words], { maxBuffer: 64 * 1024 * 1024 }, (error, output, words) => ended(output + words)));
  const scenarios = {};
  for (const name of await readdir(folder)) {
    const checks = JSON.parse(await readFile(`${folder}/${name}/checks.json`, "utf8"));
    // Such as server-tools-list-2026-11-30T20-18-57-357Z.
    const scenario = name.replace(/^server-/, "").replace(/-\d{4}-\d\d-\d\dT[\dZ-]+$/, "");
    scenarios[scenario] = checks.filter((check) => check.status === "FAILURE").map((check) => check.id);
  }
  await rm(folder, { recursive: true });
  if (Object.keys(scenarios).length === 0) throw new Error(`the suite did not run:\n${said}`);
  return [revision, scenarios];
}

const found = await Promise.all(REVISIONS.split(" ").map(failed));
door.close();
door.closeAllConnections();
console.log(JSON.stringify(Object.fromEntries(found)));
