import { Tabs as Radix } from "radix-ui";
import type { ReactNode } from "react";

export interface Tab {
  value: string;
  label: ReactNode;
  content: ReactNode;
}

/** Several views of one thing, one at a time. */
export function Tabs({ tabs, value, onChange, label }: { tabs: Tab[]; value: string; onChange: (value: string) => void; label: string }) {
  return (
    <Radix.Root value={value} onValueChange={onChange} className="flex min-h-0 flex-1 flex-col">
      <Radix.List aria-label={label} className="flex shrink-0 gap-1 overflow-x-auto border-b border-line px-2">
        {tabs.map((tab) => (
          <Radix.Trigger
            key={tab.value}
            value={tab.value}
            className="touchable -mb-px h-9 border-b-2 border-transparent px-2 text-dense font-medium whitespace-nowrap text-muted hover:text-ink data-[state=active]:border-accent data-[state=active]:text-ink"
          >
            {tab.label}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map((tab) => (
        <Radix.Content key={tab.value} value={tab.value} className="min-h-0 flex-1 overflow-y-auto data-[state=active]:flex data-[state=active]:flex-col">
          {tab.content}
        </Radix.Content>
      ))}
    </Radix.Root>
  );
}
