// @vitest-environment happy-dom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { expect, it, vi } from "vitest";
import type { AuditFilter } from "@/api/audit";
import { Filters } from "./Filters";

vi.mock("react-i18next", () => ({ useTranslation: () => ({ t: (name: string) => name, i18n: { language: "en" } }) }));
Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });

it("shows the filter of the address, also when Back changes it", async () => {
  const box = document.createElement("div");
  const root = createRoot(box);
  const paint = (filter: AuditFilter) => act(async () => root.render(<Filters filter={filter} onChange={() => {}} />));
  const fields = () => [...box.querySelectorAll("input")].map((field) => field.value);
  await paint({ who: "ann", what: "runner." });
  expect(fields()).toEqual(["ann", "runner.", ""]);
  await paint({ since: "2026-11-28" });
  expect(fields()).toEqual(["", "", "2026-11-28"]);
});

it("asks for an action in the letters of the log", async () => {
  const box = document.createElement("div");
  document.body.append(box);
  const changed = vi.fn();
  await act(async () => createRoot(box).render(<Filters filter={{ what: " Runner." }} onChange={changed} />));
  await act(async () => box.querySelector("form")?.requestSubmit());
  expect(changed).toHaveBeenCalledWith({ what: "runner." });
});
