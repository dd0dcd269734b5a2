import { useTranslation } from "react-i18next";
import { localeOf } from "@/format/locale";
import { moment } from "@/format/time";
import { serverTime } from "@/state/clock";

/** Closer ends than this are marked. */
const SOON_MS = 7 * 86_400_000;

/** When a key or a sign-in ends by itself. */
export function Expiry({ at }: { at: string | null | undefined }) {
  const { t, i18n } = useTranslation("settings");
  if (!at) return t("noExpiry");
  const left = Date.parse(at) - serverTime();
  const day = new Intl.DateTimeFormat(localeOf(i18n.language), { dateStyle: "medium" }).format(new Date(at));
  return (
    <time dateTime={at} title={moment(at, i18n.language)} className={left < SOON_MS ? "text-warn" : undefined}>
      {t(left < 0 ? "expired" : "expires", { day })}
    </time>
  );
}
