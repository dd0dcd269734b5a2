import type { Setting, SettingName } from "@/api/schema";

/** The layer that a page changes: the person's own values, or those of everyone. */
export type Layer = "user" | "tenant";

/** Modes, from the least freedom to the most. */
export const MODES = ["plan", "ask", "auto", "full"] as const;

/** A mode of agents. */
export type Mode = (typeof MODES)[number];

/** The mode, if the text is one. */
export function modeOf(text: string | null | undefined): Mode | undefined {
  return MODES.find((mode) => mode === text);
}

/** Settings that only the tenant has: nobody sets them for oneself. */
export function isTenantOnly(name: SettingName): boolean {
  return name === "max_mode" || name === "isolation" || name === "sudo";
}

/** When a change of a setting counts. */
export function appliesWhen(name: SettingName): "appliesNextMessage" | "appliesNextStep" | "appliesAtOnce" {
  if (name === "model") return "appliesNextStep";
  return name === "isolation" || name === "sudo" ? "appliesAtOnce" : "appliesNextMessage";
}

/** True if this layer has set the value, so that it can be taken back there. */
export function isSetIn(layer: Layer, setting: Setting): boolean {
  return setting.set_by === layer;
}

/** The name of a person who set a value, and whether the person was removed since. The server writes `ann, removed`. */
export function personOf(who: string): { name: string; removed: boolean } {
  const mark = ", removed";
  return who.endsWith(mark) ? { name: who.slice(0, -mark.length), removed: true } : { name: who, removed: false };
}
