import type { ChangeSandbox, Sandbox } from "@/api/schema";

const MIB = 1024 ** 2;
const MINUTE_MS = 60_000;

/** The limits of a sandbox as the form holds them: texts, in units for people. */
export interface LimitsForm {
  template: string;
  /** MiB. */
  memory: string;
  /** Processors, such as `0.5`. */
  processors: string;
  processes: string;
  /** Minutes. */
  idle: string;
  network: string;
}

/** A field of the form that takes a number. */
export type NumberField = "memory" | "processors" | "processes" | "idle";

/** The bounds of each number, in the form's units: those that the server has. */
export const BOUNDS: Record<NumberField, { least: number; most: number }> = {
  memory: { least: 64, most: 1024 ** 2 },
  processors: { least: 0.05, most: 1024 },
  processes: { least: 8, most: 32_768 },
  idle: { least: 1, most: 43_200 },
};

/** What the form holds at first. */
export function formOf(sandbox: Sandbox): LimitsForm {
  return {
    template: sandbox.template,
    memory: String(sandbox.memory_bytes / MIB),
    processors: String(sandbox.cpu_millis / 1000),
    processes: String(sandbox.processes),
    idle: String(sandbox.idle_for_ms / MINUTE_MS),
    network: sandbox.network,
  };
}

/** The fields that are no number, or out of bounds. */
export function wrongLimits(form: LimitsForm): NumberField[] {
  return (Object.keys(BOUNDS) as NumberField[]).filter((field) => {
    const text = form[field].trim();
    const value = Number(text);
    const whole = field === "processors" || field === "processes" ? field === "processors" || Number.isInteger(value) : true;
    return !/^\d+(\.\d+)?$/.test(text) || !whole || value < BOUNDS[field].least || value > BOUNDS[field].most;
  });
}

/** What of the form differs from the sandbox, as the server takes it; undefined if nothing does. */
export function changeOf(form: LimitsForm, sandbox: Sandbox): ChangeSandbox | undefined {
  const wanted = {
    template: form.template,
    memory_bytes: Math.round(Number(form.memory) * MIB),
    cpu_millis: Math.round(Number(form.processors) * 1000),
    processes: Number(form.processes),
    idle_for_ms: Math.round(Number(form.idle) * MINUTE_MS),
    network: form.network,
  };
  const changed = Object.entries(wanted).filter(([name, value]) => sandbox[name as keyof typeof wanted] !== value);
  return changed.length > 0 ? Object.fromEntries(changed) : undefined;
}

/** The sandboxes in which each word of a text occurs: in their owners, runners, templates, states or ids. */
export function filterSandboxes(sandboxes: readonly Sandbox[], text: string): Sandbox[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return sandboxes.filter((one) => {
    const own = [one.owner, one.runner_name, one.template, one.state, one.network, one.id].join("\n").toLowerCase();
    return words.every((word) => own.includes(word));
  });
}
