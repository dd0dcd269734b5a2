// @vitest-environment happy-dom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { expect, it } from "vitest";
import { useIdempotencyKey } from "./useIdempotencyKey";

it("a key stays for as long as the same is asked, and is another for anything else", () => {
  const keys: string[] = [];
  function Asks({ asked }: { asked: unknown }) {
    keys.push(useIdempotencyKey(asked));
    return null;
  }
  Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
  const root = createRoot(document.createElement("div"));
  for (const name of ["build", "build", "nightly"]) act(() => root.render(<Asks asked={{ name }} />));
  expect(keys[1]).toBe(keys[0]);
  expect(keys[2]).not.toBe(keys[0]);
});
