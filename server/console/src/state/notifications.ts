import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { waitingQuery } from "@/api/approvals";
import type { Approval } from "@/api/schema";
import { keep, kept } from "./storage";
import { countInTitle } from "./title";

const NAME = "gantry.notifications";
/** The questions of which this browser has told, the newest last; other tabs read it. */
const TOLD = "gantry.notifications.told";
/** More are not remembered: so many are asked for, and a question that was dropped would be told again. */
const TOLD_AT_MOST = 500;

/** What this browser lets pages do. `unsupported`: it has no notifications, or not for a page without TLS. */
export type NotificationPermit = NotificationPermission | "unsupported";

/** See {@link NotificationPermit}. */
export function permission(): NotificationPermit {
  return "Notification" in window && window.isSecureContext ? Notification.permission : "unsupported";
}

/** True if the person wants notifications in this browser. */
export function wantsNotifications(): boolean {
  return kept(NAME) === "on";
}

/** Keeps whether the person wants notifications. Returns false if it is known only as long as the page lives. */
export function keepWish(wanted: boolean): boolean {
  return keep(NAME, wanted ? "on" : undefined);
}

/**
 * Tells of questions that wait for the person: in the page's title, and by a notification where the person wants it and
 * does not look at the page. A notification names the chat and the tool, and nothing of what is asked.
 */
export function useNotifications(): void {
  const { t } = useTranslation("inbox");
  const navigate = useNavigate();
  const waiting = useQuery(waitingQuery).data?.approvals;
  const isFirst = useRef(true);
  useEffect(() => {
    countInTitle(waiting?.length ?? 0);
  }, [waiting]);
  useEffect(() => {
    if (!waiting) return;
    // Those that wait when the page is opened are no news.
    const isNews = !isFirst.current;
    isFirst.current = false;
    void tellOnce(waiting, (approval) => {
      if (!isNews || document.visibilityState === "visible" || !wantsNotifications() || permission() !== "granted") return;
      const tool = approval.question.kind === "call" ? approval.question.tool : t("question");
      const shown = notification(t("notification", { title: approval.session_title }), { body: tool, tag: approval.id });
      if (!shown) return;
      shown.onclick = () => {
        window.focus();
        shown.close();
        void navigate({ to: "/chat/$session", params: { session: approval.session } });
      };
    });
  }, [waiting, navigate, t]);
}

/** Calls back for each question that no tab of this browser has told of. */
async function tellOnce(waiting: readonly Approval[], tell: (approval: Approval) => void): Promise<void> {
  const all = () => {
    const told = new Set((kept(TOLD) ?? "").split(" "));
    const fresh = waiting.filter((approval) => !told.has(approval.id));
    if (fresh.length === 0) return;
    keep(TOLD, [...told, ...fresh.map((approval) => approval.id)].slice(-TOLD_AT_MOST).join(" "));
    fresh.forEach(tell);
  };
  // One tab after the other.
  if (navigator.locks) await navigator.locks.request(TOLD, all);
  else all();
}

/** Shows a notification. Browsers of phones have the permission, and show none that a page makes itself. */
function notification(title: string, options: NotificationOptions): Notification | undefined {
  try {
    return new Notification(title, options);
  } catch {
    return undefined;
  }
}
