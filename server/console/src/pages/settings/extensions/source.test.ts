import { execFileSync } from "node:child_process";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { headOf } from "@/format/head";
import { packed, readDownload, readSource, unpacked } from "./source";
import { pack, unpack } from "./tar";

const bytes = (text: string) => new TextEncoder().encode(text);
const chosen = (path: string, content: string | Uint8Array<ArrayBuffer>) => Object.assign(new File([content], path.split("/").at(-1) ?? ""), { webkitRelativePath: path.includes("/") ? path : "" });

describe("the archive of a skill's files", () => {
  const long = `${"deep/".repeat(30)}form.md`;
  const files = new Map([
    [long, bytes("long")],
    ["scripts/fill.py", bytes("#!/usr/bin/python3\n")],
    ["数据.txt", bytes("x".repeat(1500))],
  ]);

  it("is what tar itself reads, with its scripts as programs", () => {
    const listed = execFileSync("tar", ["--list", "--verbose", "--file", "-"], { input: pack(files), encoding: "utf8" });
    expect(listed).toContain(long);
    expect(listed).toMatch(/^-rwxr-xr-x.* scripts\/fill\.py$/m);
  });

  it("gives the files back, also of an archive that tar made", () => {
    expect(unpacked(packed(files))).toEqual(new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1))));
    for (const format of ["gnu", "ustar", "pax"]) {
      const made = execFileSync("tar", ["--create", `--format=${format}`, "--file", "-", "tsconfig.json", "src/api/schema.ts"]);
      expect([...unpack(new Uint8Array(made)).keys()]).toEqual(["tsconfig.json", "src/api/schema.ts"]);
    }
  });

  it("is no reason to fail where it is none", () => {
    expect(unpacked(btoa("x".repeat(2000)))).toEqual(new Map());
    expect(unpacked("%")).toEqual(new Map());
    expect(unpacked(undefined)).toEqual(new Map());
  });
});

describe("what a person chooses", () => {
  it("is a folder with its SKILL.md, without a repository's own files", async () => {
    const read = await readSource("skill", [chosen("pdf/SKILL.md", "---\nname: 'pdf-forms'\n---\nGo"), chosen("pdf/a/b.txt", "b"), chosen("pdf/.git/config", "x")]);
    expect(read).toEqual({ name: "pdf-forms", text: "---\nname: 'pdf-forms'\n---\nGo", files: new Map([["a/b.txt", bytes("b")]]), source: "pdf" });
  });

  it("is one file, named by its head or else by its own name", async () => {
    expect(await readSource("agent", [chosen("tester.md", "Test.")])).toMatchObject({ name: "tester", text: "Test.", source: "tester.md" });
  });

  it("is refused where the server could not take it", async () => {
    expect(await readSource("skill", [chosen("pdf/README.md", "x")])).toBe("noSkillFile");
    expect(await readSource("hooks", [chosen("hooks.json", new Uint8Array([0xff, 0xfe]))])).toBe("noText");
    expect(await readSource("agent", [chosen("a.md", "x".repeat(65_537))])).toBe("tooLarge");
    const many = Array.from({ length: 257 }, (_, at) => chosen(`pdf/${at}.txt`, ""));
    expect(await readSource("skill", [chosen("pdf/SKILL.md", "x"), ...many])).toBe("tooManyFiles");
  });
});

describe("the head of a file", () => {
  it("gives values that are on one line", () => {
    const text = '---\r\nname: pdf\r\ndescription: "Fills: forms"\r\nlong: >-\r\n  more\r\n---\r\ndescription: no';
    expect([headOf(text, "name"), headOf(text, "description"), headOf(text, "long"), headOf(text, "none")]).toEqual(["pdf", "Fills: forms", undefined, undefined]);
    expect(headOf("name: x", "name")).toBeUndefined();
  });
});

describe("what an address of the web gives", () => {
  const at = "https://example.org/pdf.tar.gz";
  const text = "---\nname: pdf\n---\nGo";
  const archive = (files: Record<string, string>) => new Uint8Array(gzipSync(pack(new Map(Object.entries(files).map(([path, content]) => [path, bytes(content)])))));

  it("is a SKILL.md, or an archive with a folder that has one", async () => {
    expect(await readDownload(bytes(text), at)).toEqual({ name: "pdf", text, files: new Map(), source: at });
    const packed = archive({ "skills-main/pdf/SKILL.md": text, "skills-main/pdf/scripts/fill.py": "#!x", "skills-main/README.md": "no" });
    expect(await readDownload(packed, at)).toEqual({ name: "pdf", text, files: new Map([["scripts/fill.py", bytes("#!x")]]), source: at });
  });

  it("is refused where it is no skill, leads out of its folder, or unpacks to too much", async () => {
    expect(await readDownload(archive({ "README.md": "x" }), at)).toBe("noSkillFile");
    expect(await readDownload(archive({ "SKILL.md": text, "a/../../x": "x" }), at)).toBe("noText");
    expect(await readDownload(new Uint8Array([0x1f, 0x8b, 1, 2, 3]), at)).toBe("tooLarge");
    expect(await readDownload(new Uint8Array(gzipSync(new Uint8Array(17 * 1024 * 1024))), at)).toBe("tooLarge");
  });
});
