import { expect, it } from "vitest";
import { isolationOf, propertiesOf } from "./isolation";

it("an isolation is taken apart and put together with properties that the console does not know", () => {
  expect(propertiesOf("none")).toEqual([]);
  expect(propertiesOf("network+new_word")).toEqual(["network", "new_word"]);
  expect(isolationOf(propertiesOf("network+new_word"))).toBe("network+new_word");
  expect(isolationOf([])).toBe("none");
});
