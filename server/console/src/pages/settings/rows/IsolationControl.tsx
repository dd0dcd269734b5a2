import { type FormEvent, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { isolationOf, PROPERTIES, propertiesOf } from "@/api/isolation";
import { isolationWords, propertyWords } from "@/i18n/isolation";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import type { ControlProps } from "./SettingLine";

/** What a place must keep apart: the value in words, and a dialog to choose the properties. */
export function IsolationControl({ value, onSave, saving, labelId }: ControlProps) {
  const { t } = useTranslation("settings");
  const [open, setOpen] = useState(false);
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const start = () => {
    setChosen(propertiesOf(value ?? "none"));
    setOpen(true);
  };
  const form = useId();
  const store = (event: FormEvent) => {
    event.preventDefault();
    // In the order of the list; words that the console does not know stay.
    const unknown = chosen.filter((word) => !PROPERTIES.some((one) => one === word));
    onSave(isolationOf([...PROPERTIES.filter((one) => chosen.includes(one)), ...unknown]));
    setOpen(false);
  };
  const toggle = (word: string, on: boolean) => setChosen(on ? [...chosen, word] : chosen.filter((one) => one !== word));
  return (
    <div className="flex min-w-0 flex-wrap items-center gap-2 md:justify-end">
      <span className="min-w-0 font-medium wrap-anywhere">{isolationWords(value ?? "none")}</span>
      <Button size="sm" disabled={saving} aria-describedby={labelId} onClick={start}>
        {t("change", { ns: "common" })}
      </Button>
      <Dialog
        open={open}
        onClose={() => setOpen(false)}
        title={t("isolationTitle")}
        description={t("isolationWhy")}
        actions={
          <>
            <Button onClick={() => setOpen(false)}>{t("cancel", { ns: "common" })}</Button>
            <Button type="submit" form={form} look="primary">
              {t("save", { ns: "common" })}
            </Button>
          </>
        }
      >
        <form id={form} onSubmit={store}>
          <ul>
            {PROPERTIES.map((one) => (
              <li key={one}>
                <label className="touchable flex items-center gap-2.5 py-1.5">
                  <input type="checkbox" className="size-4 accent-accent" checked={chosen.includes(one)} onChange={(event) => toggle(one, event.target.checked)} />
                  <span className="min-w-0 flex-1">{propertyWords(one)}</span>
                  <code className="text-meta text-faint">{one}</code>
                </label>
              </li>
            ))}
          </ul>
        </form>
        {chosen.length > 0 && <p className="mt-3 rounded-control bg-warn-soft px-3 py-2 text-dense">{t("isolationWarning")}</p>}
      </Dialog>
    </div>
  );
}
