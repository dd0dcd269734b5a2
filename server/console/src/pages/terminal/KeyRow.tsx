import { useState } from "react";
import { useTranslation } from "react-i18next";

const KEYS = [
  ["Esc", "\x1b"],
  ["Tab", "\t"],
  ["←", "\x1b[D"],
  ["↓", "\x1b[B"],
  ["↑", "\x1b[A"],
  ["→", "\x1b[C"],
] as const;
const CONTROLS = ["c", "d", "z", "l", "r"] as const;

/** The keys that a phone's keyboard has not. It is absent where there is a mouse. */
export function KeyRow({ onType, onDone }: { onType: (text: string) => void; onDone: () => void }) {
  const { t } = useTranslation("terminal");
  const [control, setControl] = useState(false);
  const press = (text: string) => {
    onType(text);
    setControl(false);
    onDone();
  };
  const look = "min-h-11 min-w-11 flex-1 rounded-control text-dense text-term-ink aria-pressed:bg-term-line";
  return (
    <div role="toolbar" aria-label={t("keys")} className="hidden shrink-0 border-t border-term-line bg-term pointer-coarse:flex">
      <button type="button" aria-pressed={control} className={look} onClick={() => setControl(!control)}>
        Ctrl
      </button>
      {control
        ? CONTROLS.map((letter) => (
            <button key={letter} type="button" className={look} onClick={() => press(String.fromCharCode(letter.charCodeAt(0) - 96))}>
              {letter.toUpperCase()}
            </button>
          ))
        : KEYS.map(([name, text]) => (
            <button key={name} type="button" className={look} onClick={() => press(text)}>
              {name}
            </button>
          ))}
    </div>
  );
}
