import { describe, expect, it } from "vitest";
import type { CallItem, Item, MessageItem } from "@/transcript/model";
import { RowMaker } from "./rows";

const base = { turn: "trn_1", at: 0, open: false, rewound: false };

function message(id: string, rewound = false): MessageItem {
  return {
    ...base,
    kind: "message",
    id,
    rewound,
    text: id,
    images: [],
    by: "usr_1",
    clientId: null,
    sent: "now",
    waiting: false,
    compacts: null,
    rewindable: true,
  };
}

function read(id: string, change: Partial<CallItem> = {}): CallItem {
  return {
    ...base,
    kind: "call",
    id,
    step: 1,
    ordinal: 0,
    tool: "Read",
    request: { kind: "read", path: id, first: null },
    state: "ended",
    place: null,
    placedAt: null,
    operation: null,
    output: null,
    approval: null,
    end: {
      outcome: "completed",
      exit: null,
      reason: "",
      failed: false,
      durationMs: 1,
      budgetMs: 1,
      overran: false,
      unplaced: false,
      awaits: null,
      excerpt: false,
      finding: null,
    },
    result: "",
    resultLeftOut: 0,
    images: [],
    file: null,
    task: null,
    settled: null,
    agent: null,
    ...change,
  };
}

const shape = (maker: RowMaker, items: readonly Item[]) => maker.rows(items).map((row) => `${row.kind}:${row.key}`);

describe("the rows of a conversation", () => {
  it("tell reads in a row together, once they ended well", () => {
    const items = [message("m"), read("a"), read("b"), read("c", { end: null, state: "running" })];
    expect(shape(new RowMaker(), items)).toEqual(["item:m", "looks:a:looks", "item:c"]);
  });

  it("tell one read by itself", () => {
    expect(shape(new RowMaker(), [read("a"), message("m"), read("b")])).toEqual(["item:a", "item:m", "item:b"]);
  });

  it("put what was gone back from into one row", () => {
    expect(shape(new RowMaker(), [message("a", true), message("b", true), message("c")])).toEqual(["rewound:a:rewound", "item:c"]);
  });

  it("are the same as those made at once, however the items came", () => {
    const maker = new RowMaker();
    let seed = 3;
    const random = (below: number) => {
      seed = (seed * 1103515245 + 12345) & 0x7fffffff;
      return (seed >> 8) % below;
    };
    let items: Item[] = [];
    for (let step = 0; step < 400; step++) {
      const id = `i${step}`;
      const kind = random(6);
      if (kind < 3) items = [...items, random(2) ? read(id) : message(id)];
      else if (items.length > 0) {
        const at = random(items.length);
        const item = items[at] as Item;
        items = items.with(at, kind === 3 ? { ...item, rewound: true } : item.kind === "call" ? read(item.id, { result: id }) : { ...item });
      }
      expect(maker.rows(items)).toEqual(new RowMaker().rows(items));
    }
  });

  it("keep their identity while their items do", () => {
    const maker = new RowMaker();
    const items = [message("m"), read("a"), read("b"), message("n")];
    const before = maker.rows(items);
    const after = maker.rows([...items, message("o")]);
    expect(after.slice(0, 3).every((row, index) => row === before[index])).toBe(true);
  });
});
