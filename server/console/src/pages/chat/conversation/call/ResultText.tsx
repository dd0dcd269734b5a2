import { useTranslation } from "react-i18next";
import { bytes } from "@/format/number";
import type { CallItem } from "@/transcript/model";
import { useFold } from "../context";

/** The letters that are shown at first, and at all. */
const FIRST = 4000;
const MOST = 200_000;

/** The result of a call as plain text: whatever it says is data. */
export function ResultText({ item, text = item.result, label }: { item: CallItem; text?: string; label?: string }) {
  const { t } = useTranslation("transcript");
  const [open, toggle] = useFold(`${item.id}:${label ?? "result"}`, false);
  if (text === "" && item.resultLeftOut === 0) {
    return item.end && !item.end.reason ? <p className="border-t border-line px-3 py-2 text-dense text-muted">{t("noResult")}</p> : null;
  }
  const isLong = text.length > FIRST + 400;
  const shown = isLong ? text.slice(0, open ? MOST : FIRST) : text;
  return (
    <div className="border-t border-line">
      {text !== "" && (
        <pre tabIndex={0} aria-label={label ?? t("result")} className="max-h-120 overflow-y-auto overscroll-contain px-3 py-2 text-code wrap-anywhere whitespace-pre-wrap">
          {shown.trimEnd()}
        </pre>
      )}
      {isLong && (
        <button type="button" aria-expanded={open} onClick={toggle} className="touchable w-full border-t border-line px-3 py-1 text-left text-meta text-muted hover:bg-hover hover:text-ink">
          {open ? t("showLess") : t("showAllOf", { size: bytes(text.length) })}
        </button>
      )}
      {item.resultLeftOut > 0 && <p className="px-3 py-1 text-meta text-muted">{t("resultLeftOut", { size: bytes(item.resultLeftOut) })}</p>}
    </div>
  );
}
