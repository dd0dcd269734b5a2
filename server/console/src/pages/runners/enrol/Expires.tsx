import { useTranslation } from "react-i18next";
import { ago, moment } from "@/format/time";
import { serverTime } from "@/state/clock";
import { useCountdown } from "@/ui/Time";

const HOUR_MS = 3_600_000;

/** When something ends: second by second in its last hour, in words before. */
export function Expires({ at }: { at: string }) {
  const { t, i18n } = useTranslation("runners");
  const left = useCountdown(at);
  const seconds = Math.ceil(left / 1000);
  const clock = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  return (
    <time dateTime={at} title={moment(at, i18n.language)} className="tabular-nums">
      {left === 0 ? t("isExpired") : left < HOUR_MS ? t("expiresIn", { clock }) : t("expiresWhen", { when: ago(at, serverTime(), i18n.language) })}
    </time>
  );
}
