import { useState } from "react";
import { keep, kept } from "@/state/storage";

const NAME = "gantry.terminal.font";
const SMALLEST = 8;
const LARGEST = 28;

/** The size of a terminal's font in px, in this browser, and how to change it. */
export function useFontSize(): [number, (by: number) => void] {
  const [size, setSize] = useState(() => Math.min(LARGEST, Math.max(SMALLEST, Number(kept(NAME)) || 13)));
  const zoom = (by: number) => {
    const next = Math.min(LARGEST, Math.max(SMALLEST, size + by));
    keep(NAME, String(next));
    setSize(next);
  };
  return [size, zoom];
}
