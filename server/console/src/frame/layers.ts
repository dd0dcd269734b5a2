import { useSyncExternalStore } from "react";

/** What may lie above every page, one at a time. */
export type Layer = "palette" | "help";

let open: Layer | undefined;
const listeners = new Set<() => void>();

function change(layer: Layer | undefined): void {
  open = layer;
  for (const listener of listeners) listener();
}

/** Opens a layer, and closes the one that is open. */
export function openLayer(layer: Layer): void {
  change(layer);
}

/** Closes the layer that is open. */
export function closeLayer(): void {
  change(undefined);
}

/** True while this layer is open. */
export function useLayer(layer: Layer): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => open === layer,
  );
}
