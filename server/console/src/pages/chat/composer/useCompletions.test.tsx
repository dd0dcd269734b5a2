// @vitest-environment happy-dom
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { act } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { api } from "@/api/client";
import { useCompletions } from "./useCompletions";

const OF_SESSION = "/api/v1/sessions/{id}/tool-servers";
const server = { name: "s", prompts: [{ command: "s:mode", arguments: "", description: "" }], resources: [{ mention: "@s:issue://17", name: "" }] };
Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });

let root: ReturnType<typeof createRoot>;
let asked: string[];
let works: boolean;

/** The names that are offered for a text in the end. */
async function offered(text: string, session: string | undefined): Promise<string[] | undefined> {
  let names: string[] | undefined;
  function Page() {
    names = useCompletions({ session, text, cursor: text.length, commands: true, place: undefined, online: false, directory: "" }).list?.items.map(({ name }) => name);
    return null;
  }
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  act(() =>
    root.render(
      <QueryClientProvider client={client}>
        <Page />
      </QueryClientProvider>,
    ),
  );
  await vi.waitFor(() => act(async () => expect(client.isFetching()).toBe(0)));
  return names;
}

describe("completions of tool servers", () => {
  beforeEach(() => {
    asked = [];
    works = true;
    root = createRoot(document.createElement("div"));
    vi.spyOn(api, "GET").mockImplementation((async (path: string) => {
      asked.push(path);
      if (path === OF_SESSION && !works) return { error: {}, response: new Response(null, { status: 503 }) };
      return { data: { commands: [{ name: "mode", arguments: "", summary: "" }], extensions: [], skills: [], servers: [server] }, response: new Response() };
    }) as never);
  });
  afterEach(() => {
    act(() => root.unmount());
    vi.restoreAllMocks();
  });

  it("stand behind the others, and without a runner too", async () => {
    expect(await offered("/mode", "ses_1")).toEqual(["/mode", "/s:mode"]);
    expect(await offered("see @s:", "ses_1")).toEqual(["s:issue://17"]);
  });

  it("are not asked for before there is a session, and for a text that has none", async () => {
    expect(await offered("/mode", undefined)).toEqual(["/mode"]);
    expect(await offered("mode", "ses_1")).toBeUndefined();
    expect(asked).not.toContain(OF_SESSION);
  });

  it("are missing where the request fails, and nothing else is", async () => {
    works = false;
    expect(await offered("/mode", "ses_1")).toEqual(["/mode"]);
    expect(await offered("@s:", "ses_1")).toBeUndefined();
    expect(asked).toContain(OF_SESSION);
  });
});
