import { useTranslation } from "react-i18next";
import { Dialog } from "@/ui/Dialog";
import { closeLayer, useLayer } from "./layers";

const KEYS = [
  ["Ctrl K", "keyPalette"],
  ["n", "keyNewChat"],
  ["g i", "keyInbox"],
  ["g r", "keyRunners"],
  ["g s", "keySettings"],
  ["j  k", "keyListMove"],
  ["/", "keySearch"],
  ["Ctrl Enter", "keySend"],
  ["↑", "keyEditLast"],
  ["Esc", "keyClose"],
  ["?", "keyHelp"],
] as const;

/** The list of all keys. */
export function ShortcutHelp() {
  const { t } = useTranslation("frame");
  return (
    <Dialog open={useLayer("help")} onClose={closeLayer} title={t("keyboard")}>
      <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-2 text-dense">
        {KEYS.map(([keys, name]) => (
          <div key={name} className="contents">
            <dt>
              <kbd className="rounded-control border border-line bg-sunken px-1.5 py-0.5 text-meta">{keys}</kbd>
            </dt>
            <dd>{t(name)}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
