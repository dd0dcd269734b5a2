import { Tooltip as Radix } from "radix-ui";
import { type ReactElement, useContext } from "react";
import { FloatIn } from "./float";

/** Says what a thing is when it is pointed at or focused. It never holds what cannot be read elsewhere. */
export function Tooltip({ text, side = "bottom", children }: { text: string; side?: "top" | "right" | "bottom" | "left"; children: ReactElement }) {
  const container = useContext(FloatIn);
  return (
    <Radix.Root>
      <Radix.Trigger asChild>{children}</Radix.Trigger>
      <Radix.Portal container={container}>
        <Radix.Content
          side={side}
          sideOffset={6}
          collisionPadding={8}
          className="fade-in z-50 max-w-72 rounded-control bg-ink px-2 py-1 text-meta text-canvas shadow-float"
        >
          {text}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

/** Stands once around the page. */
export const TooltipProvider = Radix.Provider;
