import { beforeEach, expect, it, vi } from "vitest";
import { shellsQuery } from "./operations";
import { queries } from "./query";

const asked = vi.hoisted(() => vi.fn());
vi.mock("./client", () => ({ answer: (given: unknown) => given, api: { GET: asked }, idempotencyKey: () => "key" }));

beforeEach(() => queries.clear());

it("finds the commands in a terminal among all that runs, but those of agents", async () => {
  const inputs: Record<string, string> = { op_shell: "terminal", op_build: "nothing", op_agent: "terminal" };
  const running = [{ id: "op_shell", kind: "exec" }, { id: "op_build", kind: "exec" }, { id: "op_agent", kind: "exec", session: "ses_1" }, { id: "op_copy", kind: "upload" }];
  asked.mockImplementation(async (path: string, { params }) => (path.endsWith("{id}") ? { input: inputs[params.path.id] } : { operations: running }));
  expect((await queries.fetchQuery(shellsQuery)).map(({ id }) => id)).toEqual(["op_shell"]);
  await queries.fetchQuery({ ...shellsQuery, staleTime: 0 });
  const each = asked.mock.calls.filter(([path]) => path.endsWith("{id}"));
  expect(each.map(([, { params }]) => params.path.id)).toEqual(["op_shell", "op_build"]);
});
