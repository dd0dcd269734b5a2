// @vitest-environment happy-dom
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Item } from "@/transcript/model";
import type { Snapshot } from "@/transcript/snapshot";
import type { EditingState } from "./useEditing";

vi.mock("react-i18next", () => ({ useTranslation: () => ({ t: (name: string) => name }) }));
vi.mock("@/api/turns", () => ({ rewind: vi.fn(async () => ({ files: [] })) }));
vi.mock("@/ui/Toast", () => ({ say: vi.fn() }));
Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });

const conversation = (rewindable: boolean) => ({ status: "ready", items: [{ kind: "message", turn: "trn_1", rewindable } as Item] }) as unknown as Snapshot;

let leave = () => {};

/** A page that has just been loaded, with this conversation. */
async function load(snapshot: Snapshot) {
  leave();
  vi.resetModules();
  const { act } = await import("react");
  const { createRoot } = await import("react-dom/client");
  const { rewind } = await import("@/api/turns");
  const { useDraft } = await import("../composer/draft");
  const { useEditing } = await import("./useEditing");
  const page = { draft: "", edit: undefined as unknown as EditingState, rewind, act };
  function Page() {
    page.edit = useEditing("usr_1", "ses_1", snapshot);
    page.draft = useDraft("usr_1", "ses_1");
    return null;
  }
  const root = createRoot(document.createElement("div"));
  act(() => root.render(<Page />));
  leave = () => {
    act(() => root.unmount());
    dispatchEvent(new Event("pagehide"));
  };
  return page;
}

async function edits(text: string) {
  const page = await load(conversation(true));
  page.act(() => page.edit.ask("trn_1", "as it was"));
  await page.act(() => page.edit.choose("both"));
  page.act(() => page.edit.editing?.onText(text));
  return page;
}

describe("the edit of an earlier message", () => {
  beforeEach(() => localStorage.clear());
  afterEach(() => {
    leave();
    leave = () => {};
  });

  it("is there after a reload, and goes back as far as was chosen", async () => {
    await edits("changed");
    const page = await load(conversation(true));
    expect(page.edit.editing).toMatchObject({ turn: "trn_1", text: "changed" });
    await page.edit.editing?.before?.();
    expect(page.rewind).toHaveBeenCalledExactlyOnceWith("ses_1", "trn_1", { conversation: true, files: true }, expect.any(String));
  });

  it("is forgotten once it is done", async () => {
    const page = await edits("changed");
    page.act(() => page.edit.done());
    expect((await load(conversation(true))).edit.editing).toBeUndefined();
    expect(localStorage.length).toBe(0);
  });

  it("becomes a draft if its message was gone back from meanwhile", async () => {
    await edits("changed");
    const page = await load(conversation(false));
    expect([page.edit.editing, page.draft]).toEqual([undefined, "changed"]);
  });
});
