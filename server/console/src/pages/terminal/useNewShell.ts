import { useState } from "react";
import { type ShellPlace, startShell } from "@/api/operations";
import type { OpenTerminal } from "./terminals";

/** The size with which a shell begins; the page tells the right one as soon as it shows it. */
const FIRST_SIZE = { rows: 24, columns: 80 };

/** Opens shells, one at a time. */
export function useNewShell(onOpen: (opened: OpenTerminal) => void): { open: (place: ShellPlace) => Promise<void>; busy: boolean; error: unknown } {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const open = async (place: ShellPlace) => {
    setBusy(true);
    setError(undefined);
    try {
      const operation = await startShell(place, FIRST_SIZE);
      onOpen({ operation: operation.id, runner: operation.runner.name, ended: false });
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return { open, busy, error };
}
