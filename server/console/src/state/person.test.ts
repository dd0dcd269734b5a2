// @vitest-environment happy-dom
import { beforeEach, expect, it, vi } from "vitest";

const replace = vi.fn();

beforeEach(() => {
  vi.resetModules();
  replace.mockClear();
  localStorage.clear();
  vi.spyOn(location, "replace").mockImplementation(replace);
});

/** A page that was loaded anew. */
async function page() {
  return { ...(await import("./person")), ...(await import("./storage")) };
}

it("keeps what is the person's own over a reload, and forgets it for another person", async () => {
  const first = await page();
  first.noteWho("usr_a");
  first.keep("gantry.draft.usr_a.new", "secret");
  first.keep("gantry.edit.usr_a.ses_1", "secret");
  first.keep("gantry.terminals", "[]");
  first.keep("gantry.theme", "dark");
  vi.resetModules();
  const again = await page();
  again.noteWho("usr_a");
  expect(again.kept("gantry.draft.usr_a.new")).toBe("secret");
  vi.resetModules();
  const other = await page();
  other.noteWho("usr_b");
  expect(Object.keys(localStorage).sort()).toEqual(["gantry.person", "gantry.theme"]);
  expect(replace).not.toHaveBeenCalled();
});

it("is loaded anew where another person signs in, and keeps nothing of the first one until then", async () => {
  const { noteWho, keep } = await page();
  noteWho("usr_a");
  keep("gantry.draft.usr_a.new", "secret");
  noteWho("usr_b");
  keep("gantry.draft.usr_a.new", "later");
  expect([Object.keys(localStorage), replace.mock.calls]).toEqual([[], [["/"]]]);
});

it("leaves where another tab signs out", async () => {
  const { noteWho, followOtherTabs } = await page();
  noteWho("usr_a");
  const stop = followOtherTabs();
  const changed = (newValue: string | null) => dispatchEvent(new StorageEvent("storage", { key: "gantry.person", newValue }));
  changed("usr_a");
  expect(replace).not.toHaveBeenCalled();
  changed(null);
  expect(replace).toHaveBeenCalledWith("/");
  stop();
});
