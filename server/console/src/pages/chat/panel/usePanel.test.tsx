// @vitest-environment happy-dom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { useHasNoRoom } from "../useIsNarrow";
import { usePanel } from "./usePanel";

vi.mock("../useIsNarrow", () => ({ useHasNoRoom: vi.fn() }));
Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });

let root: ReturnType<typeof createRoot>;
let panel: ReturnType<typeof usePanel>;

function Page() {
  panel = usePanel();
  return null;
}

const paint = (window: "wide" | "narrow") => {
  vi.mocked(useHasNoRoom).mockReturnValue(window === "narrow");
  act(() => root.render(<Page key="page" />));
};
const ask = (open: boolean) => act(() => panel[1](open));

describe("the panel", () => {
  beforeEach(() => {
    localStorage.clear();
    root = createRoot(document.createElement("div"));
  });
  afterEach(() => act(() => root.unmount()));

  it("stays open beside a conversation, and covers none by itself", () => {
    paint("wide");
    ask(true);
    paint("narrow");
    expect(panel[0]).toBe(false);
    paint("wide");
    expect(panel[0]).toBe(true);
  });

  it("that was opened over a conversation is not remembered", () => {
    paint("narrow");
    ask(true);
    expect(panel[0]).toBe(true);
    paint("wide");
    expect(panel[0]).toBe(false);
    paint("narrow");
    expect(panel[0]).toBe(false);
  });
});
