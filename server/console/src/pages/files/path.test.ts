import { expect, test } from "vitest";
import { crumbs, isName, join } from "./path";

test("paths are taken apart and joined", () => {
  expect(join("", "a")).toBe("a");
  expect(join("a/b", "c")).toBe("a/b/c");
  expect(crumbs("a/b")).toEqual([
    { name: "a", path: "a" },
    { name: "b", path: "a/b" },
  ]);
});

test("a name is no path, and fits into a file system", () => {
  expect(["a", ".hidden", "名", "a b"].every(isName)).toBe(true);
  expect(["", ".", "..", "a/b", "a\0b", "名".repeat(100)].some(isName)).toBe(false);
});
