import { RadioGroup } from "radix-ui";

interface Segment<T extends string> {
  value: T;
  label: string;
}

/** One of two or three, all in sight. */
export function Segments<T extends string>({ label, segments, value, onChange }: { label: string; segments: readonly Segment<T>[]; value: T; onChange: (value: T) => void }) {
  return (
    <RadioGroup.Root aria-label={label} value={value} onValueChange={(chosen) => onChange(chosen as T)} orientation="horizontal" className="flex rounded-control bg-sunken p-0.5">
      {segments.map((segment) => (
        <RadioGroup.Item
          key={segment.value}
          value={segment.value}
          className="touchable h-7 min-w-0 flex-1 truncate rounded-control px-2 text-dense text-muted data-[state=checked]:bg-surface data-[state=checked]:font-medium data-[state=checked]:text-ink"
        >
          {segment.label}
        </RadioGroup.Item>
      ))}
    </RadioGroup.Root>
  );
}
