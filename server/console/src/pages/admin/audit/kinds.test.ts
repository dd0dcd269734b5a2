import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { KINDS, kindInWords } from "./kinds";

const sources = ["../store/src", "../app/src"].flatMap((root) =>
  readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".rs") && !/\btests\b/.test(path))
    .map((path) => readFileSync(`${root}/${path}`, "utf8")),
);

it("every kind that is offered is one of the server's, and has words", () => {
  const unknown = Object.keys(KINDS).filter((kind) => !sources.some((source) => source.includes(`"${kind}"`)));
  expect(unknown).toEqual([]);
});

it("every kind that the server records of these things is offered", () => {
  const things = [...new Set(Object.keys(KINDS).map((kind) => kind.split(".")[0]))].join("|");
  const recorded = sources.flatMap((source) => [...source.matchAll(new RegExp(`"((?:${things})\\.(?!pem)[a-z_]+)"`, "g"))].map(([, kind]) => kind ?? ""));
  expect(recorded.filter((kind) => !kindInWords(kind, "zh"))).toEqual([]);
});
