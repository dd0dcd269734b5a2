import { type KeyboardEvent, type PointerEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { keep, kept } from "@/state/storage";

/** The width of the list, in pixels. */
const WIDTH = { least: 220, first: 280, most: 480, step: 16 };
const NAME = "gantry.list-width";

function within(width: number): number {
  return Math.min(Math.max(Math.round(width), WIDTH.least), WIDTH.most);
}

/** The width of the list, which this browser remembers. */
export function useListWidth(): [number, (width: number) => void] {
  const [width, setWidth] = useState(() => within(Number(kept(NAME)) || WIDTH.first));
  const change = (wanted: number) => {
    setWidth(within(wanted));
    keep(NAME, String(within(wanted)));
  };
  return [width, change];
}

/** The line between the list and the chat: drag it, or move it with the arrow keys; a double click sets it back. */
export function Divider({ width, onChange }: { width: number; onChange: (width: number) => void }) {
  const { t } = useTranslation("chat");
  const drag = (event: PointerEvent<HTMLDivElement>) => {
    if (event.currentTarget.hasPointerCapture(event.pointerId)) onChange(width + event.movementX);
  };
  const hear = (event: KeyboardEvent) => {
    if (event.key === "ArrowLeft") onChange(width - WIDTH.step);
    else if (event.key === "ArrowRight") onChange(width + WIDTH.step);
    else if (event.key === "Home") onChange(WIDTH.least);
    else if (event.key === "End") onChange(WIDTH.most);
    else return;
    event.preventDefault();
  };
  return (
    <div
      role="separator"
      tabIndex={0}
      aria-orientation="vertical"
      aria-label={t("listResize")}
      aria-valuenow={width}
      aria-valuemin={WIDTH.least}
      aria-valuemax={WIDTH.most}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={drag}
      onKeyDown={hear}
      onDoubleClick={() => onChange(WIDTH.first)}
      className="group/divider relative -mx-1 w-2 shrink-0 cursor-col-resize touch-none"
    >
      <span aria-hidden className="absolute inset-y-0 left-1/2 w-px bg-line group-hover/divider:bg-line-strong group-focus-visible/divider:bg-accent" />
    </div>
  );
}
