import { Outlet } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { BottomBar } from "./BottomBar";
import { ConnectionBar } from "./ConnectionBar";
import { useLive } from "./live";
import { Palette } from "./Palette";
import { Rail } from "./Rail";
import { ShortcutHelp } from "./ShortcutHelp";
import { SignInAgain } from "./SignInAgain";
import { useShortcuts } from "./shortcuts";
import { useNotifications } from "@/state/notifications";

/** What surrounds every page: the rail, or on a phone the bottom bar, and what lies above all. */
export function Frame() {
  const { t } = useTranslation("frame");
  useLive();
  useShortcuts();
  useNotifications();
  return (
    <div className="flex h-dvh flex-col md:flex-row">
      <a href="#content" className="sr-only z-50 rounded-control bg-raised px-3 py-2 focus:not-sr-only focus:absolute focus:top-2 focus:left-2">
        {t("skipToContent")}
      </a>
      <Rail />
      <div id="content" tabIndex={-1} className="relative flex min-h-0 min-w-0 flex-1 flex-col outline-none">
        <ConnectionBar />
        <div className="flex min-h-0 min-w-0 flex-1">
          <Outlet />
        </div>
      </div>
      <BottomBar />
      <Palette />
      <ShortcutHelp />
      <SignInAgain />
    </div>
  );
}
