import { Check } from "lucide-react";
import { Popover } from "radix-ui";
import { type KeyboardEvent, type ReactElement, type ReactNode, useEffect, useId, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { cx } from "./class";
import { Dot, type DotState } from "./Dot";
import { Input } from "./Field";

/** One of the things of a {@link Picker}. */
export interface PickerOption {
  value: string;
  label: string;
  /** A few words beside the label. */
  meta?: string | undefined;
  /** One line below the label. */
  note?: string | undefined;
  dot?: DotState | undefined;
  /** It cannot be chosen; the note says why. */
  disabled?: boolean | undefined;
  /** The heading of its group; the first option of a group brings it. */
  group?: string | undefined;
}

interface PickerProps {
  trigger: ReactElement;
  /** What is chosen here, for screen readers and above the list. */
  label: string;
  options: readonly PickerOption[];
  /** The option that counts now. */
  value?: string | undefined;
  onChoose: (value: string) => void;
  /** Above the list, such as for whom the choice counts. */
  header?: ReactNode;
  /** Below the list, such as from when on it counts. */
  footer?: ReactNode;
  /** What the list says when it has no option. */
  empty?: string;
  /** True if the list stays open after a choice, such as for a way through folders. */
  keepOpen?: boolean;
  onOpen?: (open: boolean) => void;
}

/** More options than these have a box to filter them. */
const WITHOUT_FILTER = 7;

/** A list to choose one thing from, which a button opens. All of it works by keyboard. */
export function Picker({ trigger, onOpen, ...list }: PickerProps) {
  const [open, setOpen] = useState(false);
  const change = (wanted: boolean) => {
    setOpen(wanted);
    onOpen?.(wanted);
  };
  return (
    <Popover.Root open={open} onOpenChange={change}>
      <Popover.Trigger asChild>{trigger}</Popover.Trigger>
      <Popover.Portal>
        <Popover.Content
          align="start"
          sideOffset={6}
          collisionPadding={8}
          aria-label={list.label}
          onOpenAutoFocus={(event) => {
            event.preventDefault();
            (event.target as HTMLElement).querySelector<HTMLElement>("[role=combobox], [role=listbox]")?.focus();
          }}
          className="fade-in z-40 flex max-h-(--radix-popover-content-available-height) w-80 max-w-[calc(100vw-16px)] flex-col rounded-card border border-line bg-raised shadow-float"
        >
          <List {...list} close={() => change(false)} />
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}

function List({ label, options, value, onChoose, header, footer, empty, keepOpen, close }: Omit<PickerProps, "trigger" | "onOpen"> & { close: () => void }) {
  const { t } = useTranslation("common");
  const id = useId();
  const box = useRef<HTMLUListElement>(null);
  const filtered = options.length > WITHOUT_FILTER;
  const [typed, setTyped] = useState("");
  const shown = options.filter((option) => `${option.label} ${option.meta ?? ""}`.toLowerCase().includes(typed.trim().toLowerCase()));
  const [at, setAt] = useState(() => Math.max(0, options.findIndex((option) => option.value === value)));
  const chosen = Math.min(at, shown.length - 1);
  useEffect(() => {
    box.current?.children[chosen]?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  const choose = (option: PickerOption | undefined) => {
    if (!option || option.disabled) return;
    onChoose(option.value);
    setTyped("");
    if (!keepOpen) close();
  };
  const step = (by: number) => {
    let next = chosen + by;
    while (shown[next]?.disabled) next += by;
    if (shown[next]) setAt(next);
  };
  const hear = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "ArrowDown") step(1);
    else if (event.key === "ArrowUp") step(-1);
    else if (event.key === "Home" && !filtered) setAt(0);
    else if (event.key === "End" && !filtered) setAt(shown.length - 1);
    else if (event.key === "Enter" || (event.key === " " && !filtered)) choose(shown[chosen]);
    else return;
    event.preventDefault();
  };
  const active = shown[chosen] ? `${id}-${chosen}` : undefined;
  return (
    <>
      {header && <div className="border-b border-line p-2">{header}</div>}
      {filtered && (
        <div className="p-2 pb-0">
          <Input
            role="combobox"
            aria-expanded
            aria-controls={id}
            aria-activedescendant={active}
            aria-label={t("search")}
            placeholder={t("search")}
            maxLength={200}
            value={typed}
            onKeyDown={hear}
            onChange={(event) => {
              setTyped(event.target.value);
              setAt(0);
            }}
          />
        </div>
      )}
      <ul
        ref={box}
        id={id}
        role="listbox"
        aria-label={label}
        {...(filtered ? {} : { tabIndex: 0, "aria-activedescendant": active, onKeyDown: hear })}
        className="max-h-80 min-h-0 flex-1 overflow-y-auto p-1 outline-none"
      >
        {shown.map((option, place) => (
          <Option
            key={option.value}
            id={`${id}-${place}`}
            option={option}
            heading={option.group !== shown[place - 1]?.group ? option.group : undefined}
            active={place === chosen}
            selected={option.value === value}
            onPoint={() => setAt(place)}
            onChoose={() => choose(option)}
          />
        ))}
        {shown.length === 0 && <li className="px-2 py-3 text-dense text-muted">{empty ?? t("none")}</li>}
      </ul>
      {footer && <div className="border-t border-line px-3 py-2 text-meta text-muted">{footer}</div>}
    </>
  );
}

interface OptionProps {
  id: string;
  option: PickerOption;
  heading: string | undefined;
  active: boolean;
  selected: boolean;
  onPoint: () => void;
  onChoose: () => void;
}

function Option({ id, option, heading, active, selected, onPoint, onChoose }: OptionProps) {
  return (
    <li id={id} role="option" aria-selected={selected} aria-disabled={option.disabled || undefined} onPointerMove={onPoint} onClick={onChoose} className={cx(!option.disabled && "cursor-pointer")}>
      {heading && <p className="px-2 pt-2 pb-1 text-meta font-medium text-faint">{heading}</p>}
      <div className={cx("touchable flex items-start gap-2 rounded-control px-2 py-1.5", active && "bg-hover", option.disabled && "opacity-55")}>
        <Check aria-hidden className={cx("mt-px size-4 shrink-0 text-accent", !selected && "invisible")} />
        <div className="min-w-0 flex-1">
          <p className="flex items-center gap-2 text-dense">
            {option.dot && <Dot state={option.dot} />}
            <span className="min-w-0 flex-1 truncate font-medium">{option.label}</span>
            {option.meta && <span className="shrink-0 text-meta text-faint">{option.meta}</span>}
          </p>
          {option.note && <p className="text-meta wrap-anywhere text-muted">{option.note}</p>}
        </div>
      </div>
    </li>
  );
}
