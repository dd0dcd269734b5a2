import { useState } from "react";
import { useTranslation } from "react-i18next";
import { keepWish, type NotificationPermit, permission, wantsNotifications } from "@/state/notifications";
import { Button } from "@/ui/Button";
import { Switch } from "@/ui/Field";
import { Section } from "@/ui/Page";
import { say } from "@/ui/Toast";
import { Row, Rows } from "./rows/Row";

const STATES = {
  granted: "notifyGranted",
  default: "notifyAsks",
  denied: "notifyDenied",
  unsupported: "notifyUnsupported",
} as const satisfies Record<NotificationPermit, string>;

/** Whether this browser tells of questions while its tab is not in sight. */
export function NotificationsSection() {
  const { t } = useTranslation("settings");
  const [wanted, setWanted] = useState(wantsNotifications());
  const [allowed, setAllowed] = useState(permission);
  const [isKept, setIsKept] = useState(true);
  const on = wanted && allowed === "granted";
  const change = async (on: boolean) => {
    let now = permission();
    if (on && now === "default") now = await Notification.requestPermission();
    setAllowed(now);
    const granted = on && now === "granted";
    setIsKept(keepWish(granted));
    setWanted(granted);
  };
  const tryOut = () => {
    // Browsers of phones have the permission, and show none that a page makes itself.
    try {
      new Notification(t("notifyExampleTitle"), { body: t("notifyExample"), tag: "gantry-example" });
    } catch {
      say(t("notifyFailed"), true);
    }
  };
  return (
    <Section title={t("navNotifications")} note={t("thisBrowser")}>
      <Rows>
        <Row
          label={t("labelNotify")}
          sentence={t("sentenceNotify")}
          control={<Switch label={t("labelNotify")} checked={on} disabled={allowed === "denied" || allowed === "unsupported"} onChange={(next) => void change(next)} />}
          meta={t(STATES[allowed])}
          warning={isKept ? undefined : t("notKept")}
        />
        {on && (
          <Row
            label={t("labelNotifyTry")}
            sentence={t("sentenceNotifyTry")}
            control={
              <Button size="sm" onClick={tryOut}>
                {t("showExample")}
              </Button>
            }
          />
        )}
      </Rows>
    </Section>
  );
}
