import { describe, expect, it } from "vitest";
import type { ModelAccount } from "@/api/schema";
import { formOf, isAccountName, isServerAddress, namesIn, OTHER, requestOf } from "./account-form";

const empty = { provider: "anthropic", name: "", key: "", baseUrl: "", format: "", models: "" };

const gateway: ModelAccount = {
  id: "mac_1",
  name: "gateway",
  provider: "gateway",
  paid_by: "own",
  has_key: true,
  base_url: "https://gateway.example/v1",
  format: "openai-chat",
  models: ["a", "b"],
  changed_at: "2026-11-30T00:00:00Z",
};

describe("the form of an account", () => {
  it("leaves to the server what was not typed", () => {
    expect(requestOf({ ...empty, key: " sk-1 " }, false, undefined)).toEqual({ provider: "anthropic", of_tenant: false, key: "sk-1" });
  });

  it("names another server by the account's name", () => {
    const form = { ...empty, provider: OTHER, name: "gateway", baseUrl: "https://gateway.example/v1", models: "a, b\n b" };
    expect(requestOf(form, true, undefined)).toEqual({ provider: "gateway", name: "gateway", of_tenant: true, base_url: "https://gateway.example/v1", models: ["a", "b"] });
  });

  it("keeps the address and the models of an account whose key is replaced", () => {
    const form = formOf(gateway, ["anthropic"]);
    expect(form).toMatchObject({ provider: OTHER, key: "", models: "a, b" });
    expect(requestOf({ ...form, key: "sk-2" }, false, gateway)).toEqual({
      provider: "gateway",
      name: "gateway",
      of_tenant: false,
      key: "sk-2",
      base_url: "https://gateway.example/v1",
      format: "openai-chat",
      models: ["a", "b"],
    });
  });

  it("knows names and addresses", () => {
    expect(namesIn(" a,,b \n a")).toEqual(["a", "b"]);
    expect(["work-2", "my.gw_x"].every(isAccountName)).toBe(true);
    expect(["", "auto", "operator", "a/b", "a b", "x".repeat(65)].some(isAccountName)).toBe(false);
    expect(isServerAddress("https://a.example/v1")).toBe(true);
    expect(["", "a.example", "javascript:alert(1)", "ftp://a"].some(isServerAddress)).toBe(false);
  });
});
