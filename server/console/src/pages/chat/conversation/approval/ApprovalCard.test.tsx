// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { answerApproval, approvalQuery } from "@/api/approvals";
import { ProblemError } from "@/api/problem";
import type { Approval } from "@/api/schema";
import { ApprovalCard } from "./ApprovalCard";
import { AFTER_QUESTIONS } from "./focus";

vi.mock("react-i18next", () => ({ useTranslation: () => ({ t: (name: string, with_?: { name?: string }) => (with_?.name ? `${name} ${with_.name}` : name), i18n: { language: "en" } }) }));
vi.mock("@/api/approvals", async (original) => ({ ...(await original<object>()), answerApproval: vi.fn(), approvalQuery: vi.fn() }));
Object.assign(globalThis, {
  IS_REACT_ACT_ENVIRONMENT: true,
  IntersectionObserver: class {
    observe() {}
    disconnect() {}
  },
});

const approval: Approval = {
  id: "apr_1",
  session: "ses_1",
  session_title: "",
  turn: "trn_1",
  step: 1,
  ordinal: 0,
  question: { kind: "call", tool: "Shell", text: "make deploy", risk: "medium", why: "ask mode", rule: "Shell(make *)", editable: true, runner_name: "laptop" },
  digest: "d".repeat(64),
  asked_at: new Date(Date.now()).toISOString(),
  until: new Date(Date.now() + 86_400_000).toISOString(),
};
const answered: Approval = { ...approval, outcome: { answer: { outcome: "denied" }, at: new Date().toISOString(), by: "bea" } };

const box = document.createElement("div");
const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
let root: ReturnType<typeof createRoot>;
const button = (name: string) => [...box.querySelectorAll("button")].find((one) => one.textContent === name) as HTMLButtonElement;
const card = (id?: string) => box.querySelector(id ? `#approval-${id}` : "section") as HTMLElement;
const press = (target: HTMLElement, key: string, more = {}) => act(async () => void target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more })));

async function paint(...shown: Approval[]) {
  root = createRoot(box);
  await show(...shown);
}

async function show(...shown: Approval[]) {
  await act(async () =>
    root.render(
      <QueryClientProvider client={queries}>
        {shown.map((one) => (
          <ApprovalCard key={one.id} approval={one} />
        ))}
        <textarea {...{ [AFTER_QUESTIONS]: "" }} />
      </QueryClientProvider>,
    ),
  );
}

/** Writes in a field, as React hears it. */
async function write(field: HTMLTextAreaElement, text: string) {
  Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value")?.set?.call(field, text);
  await act(async () => void field.dispatchEvent(new Event("input", { bubbles: true })));
}

describe("the card of a question", () => {
  beforeEach(() => {
    document.body.append(box);
    vi.useFakeTimers({ toFake: ["performance", "setInterval", "clearInterval"] });
    vi.mocked(answerApproval).mockReset().mockReturnValue(new Promise(() => {}));
    vi.mocked(approvalQuery).mockReset().mockImplementation((id) => ({ queryKey: ["approvals", "one", id], queryFn: async () => answered }) as never);
  });
  afterEach(() => {
    act(() => root.unmount());
    queries.clear();
    vi.useRealTimers();
  });

  it("answers once, however often it is pressed", async () => {
    await paint({ ...approval, id: "apr_once" });
    vi.advanceTimersByTime(1000);
    const allow = button("allowOnce");
    await act(async () => {
      allow.click();
      allow.click();
      button("deny").click();
    });
    expect(vi.mocked(answerApproval).mock.calls).toEqual([["apr_once", approval.digest, { outcome: "allowed" }]]);
    expect(box.textContent).toContain("answerSending");
  });

  it("hears nothing that was pressed as it came", async () => {
    await paint({ ...approval, id: "apr_deaf" });
    await act(async () => button("allowOnce").click());
    expect(answerApproval).not.toHaveBeenCalled();
  });

  it("takes Enter and Esc only on itself, and not while they are held", async () => {
    await paint({ ...approval, id: "apr_keys" });
    vi.advanceTimersByTime(1000);
    await press(document.body, "Enter");
    await press(card(), "Enter", { repeat: true });
    await press(card(), "Enter", { ctrlKey: true });
    await act(async () => button("denyWhy").click());
    const words = card().querySelector("textarea") as HTMLElement;
    await press(words, "Enter");
    await press(words, "Escape");
    expect(answerApproval).not.toHaveBeenCalled();
    // Esc left the words; the next one, on the card, denies.
    expect(card().querySelector("textarea")).toBeNull();
    await press(card(), "Escape");
    expect(vi.mocked(answerApproval).mock.calls).toEqual([["apr_keys", approval.digest, { outcome: "denied" }]]);
  });

  it("says who answered first, and cannot be pressed then", async () => {
    vi.mocked(answerApproval).mockRejectedValue(new ProblemError({ code: "conflict", status: 409, detail: "answered" }));
    await paint({ ...approval, id: "apr_late" });
    vi.advanceTimersByTime(1000);
    await act(async () => button("allowOnce").click());
    await act(async () => {});
    expect(box.textContent).toContain("denied bea");
    expect(button("allowOnce")).toBeUndefined();
  });

  it("sends the words of a refusal by Enter, and begins a line by Shift and Enter", async () => {
    await paint({ ...approval, id: "apr_words" });
    vi.advanceTimersByTime(1000);
    await act(async () => button("denyWhy").click());
    const words = card().querySelector("textarea") as HTMLTextAreaElement;
    await write(words, "Not on Friday");
    await press(words, "Enter", { shiftKey: true });
    await press(words, "Enter", { isComposing: true });
    expect(answerApproval).not.toHaveBeenCalled();
    await press(words, "Enter");
    expect(vi.mocked(answerApproval).mock.calls).toEqual([["apr_words", approval.digest, { outcome: "denied", words: "Not on Friday" }]]);
  });

  it("sends a changed command by Ctrl and Enter", async () => {
    await paint({ ...approval, id: "apr_command" });
    vi.advanceTimersByTime(1000);
    await act(async () => button("changeCommand").click());
    const command = card().querySelector("textarea") as HTMLTextAreaElement;
    await write(command, "make test");
    await press(command, "Enter");
    expect(answerApproval).not.toHaveBeenCalled();
    await press(command, "Enter", { ctrlKey: true });
    expect(vi.mocked(answerApproval).mock.calls).toEqual([["apr_command", approval.digest, { outcome: "allowed", command: "make test" }]]);
  });

  it("hands the focus on: to the next question, and after the last to the input", async () => {
    const [first, second] = [{ ...approval, id: "apr_first" }, { ...approval, id: "apr_second" }];
    await paint(first, second);
    vi.advanceTimersByTime(1000);
    button("allowOnce").focus();
    await act(async () => button("allowOnce").click());
    expect(document.activeElement).toBe(card("apr_first"));
    await show({ ...first, outcome: answered.outcome ?? null }, second);
    expect(document.activeElement).toBe(card("apr_second"));
    // A second press, meant for the first question.
    await press(card("apr_second"), "Enter");
    expect(answerApproval).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(1000);
    await press(card("apr_second"), "Enter");
    expect(answerApproval).toHaveBeenCalledTimes(2);
    await show();
    expect(document.activeElement).toBe(box.querySelector("textarea"));
  });

  it("has no way to answer after the deadline", async () => {
    await paint({ ...approval, id: "apr_over", until: new Date(Date.now() - 1000).toISOString() });
    expect(button("allowOnce")).toBeUndefined();
    expect(box.textContent).toContain("deadlinePassed");
  });
});
