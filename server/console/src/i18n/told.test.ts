// @vitest-environment happy-dom
import { readFileSync } from "node:fs";
import i18next from "i18next";
import { beforeAll, describe, expect, it } from "vitest";
import { tellBy, told, toldProblem } from "./told";
import { chinese, told as book } from "./zh";

const PROGRAMS = "../../shared/consent/src/risk/programs.txt";

describe("the server's sentences in Chinese", () => {
  beforeAll(async () => {
    await i18next.init({ lng: "zh", resources: { zh: chinese } });
    tellBy(book);
  });

  it("are told with what the server puts into them", () => {
    expect(told("it only reads")).toBe("它只读取");
    expect(told("auto mode asks: it runs ./build, and the sandbox does not prove file_writes+processes")).toBe("“自动”模式询问；这会：运行 ./build。沙箱未证明隔离：文件写入、其他进程");
    expect(told('runner "lap" is offline since 2026-11-30T08:12:31Z; start it (gantry-runner run) or name another runner (gantry exec -r NAME)')).toMatch(/^运行器 lap 从 2026年11月30日 .*起离线/);
  });

  it("have no word of the server's left in what /status tells", () => {
    expect(told("2 calls of models · 1k tokens sent, 20 received · unpriced")).toBe("2 次模型调用 · 发送 1k token，接收 20 · 无价格");
    expect(told("ask (asks before each change): your own choice, and a ceiling forbids full")).toBe("询问（每次更改前询问）：你的选择，上限不允许“完全”");
  });

  it("stay as they came where there are no words for them", () => {
    expect(told("a sentence of a newer server")).toBe("a sentence of a newer server");
    expect(told("constructor")).toBe("constructor");
    expect(toldProblem("constructor", "a sentence of a newer server")).toBe("a sentence of a newer server");
  });

  it("are told by the problem's code where the sentence itself is not known", () => {
    expect(toldProblem("not_found", "session not found")).toBe("不存在，或属于其他人。");
    expect(toldProblem("conflict", "a newer reason for $&")).toBe("当前状态下无法这样做：a newer reason for $&");
    expect(toldProblem("conflict", "the question is answered by now")).toBe("这个问题已有答复");
  });

  it("have words for every risk in the table of programs", () => {
    const risks = [...readFileSync(PROGRAMS, "utf8").matchAll(/^== (?:medium|high|doubt): (.*)$/gm)].map(([, risk]) => risk ?? "");
    expect(risks.length).toBeGreaterThan(0);
    expect(risks.filter((risk) => told(risk) === risk)).toEqual([]);
  });

  it("have words for every code of a problem", () => {
    const codes = [...readFileSync("../api/src/rest/problem/code.rs", "utf8").matchAll(/^ {4}\w+: "(\w+)", [A-Z_]+,/gm)].map(([, code]) => code ?? "");
    expect(codes.length).toBeGreaterThan(0);
    expect(codes.filter((code) => toldProblem(code, "?") === "?")).toEqual([]);
  });
});
