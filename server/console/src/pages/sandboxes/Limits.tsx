import { useTranslation } from "react-i18next";
import type { Sandbox } from "@/api/schema";
import { bytes } from "@/format/number";

/** What a sandbox may use at most, in words. */
export function useLimits(sandbox: Sandbox): string {
  const { t } = useTranslation("sandboxes");
  return t("limitsAre", {
    memory: bytes(sandbox.memory_bytes),
    processors: t("processorsAre", { count: sandbox.cpu_millis / 1000 }),
    processes: t("processesAre", { count: sandbox.processes }),
  });
}

/** A sandbox's network in words. */
export function useNetwork(sandbox: Sandbox): string {
  const { t } = useTranslation("sandboxes");
  return sandbox.network === "none" ? t("networkNone") : sandbox.network === "open" ? t("networkOpen") : sandbox.network;
}
