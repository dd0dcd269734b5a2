import { Link, useLocation, useNavigate } from "@tanstack/react-router";
import { Ellipsis } from "lucide-react";
import { useTranslation } from "react-i18next";
import { isAdmin, useMe } from "@/api/me";
import { useWaiting } from "@/api/approvals";
import { cx } from "@/ui/class";
import { Menu, MenuItem, MenuLine } from "@/ui/Menu";
import { useSignOut } from "./account-actions";
import { PLACES } from "./places";
import { Count } from "./Rail";

const ON_BAR = ["chat", "inbox", "runners"];
const ENTRY = "relative flex min-h-12 flex-1 flex-col items-center justify-center gap-0.5 text-meta text-muted";

/** The pages, at the lower edge of a phone. */
export function BottomBar() {
  const { t } = useTranslation("frame");
  const me = useMe();
  const waiting = useWaiting();
  const navigate = useNavigate();
  const signOut = useSignOut();
  const path = useLocation({ select: (location) => location.pathname });
  const rest = PLACES.filter((place) => !ON_BAR.includes(place.name) && (!place.admins || isAdmin(me)));
  return (
    <nav aria-label={t("navigation")} className="flex shrink-0 border-t border-line bg-surface pb-[env(safe-area-inset-bottom)] md:hidden">
      {PLACES.filter((place) => ON_BAR.includes(place.name)).map((place) => (
        <Link key={place.to} to={place.to} className={ENTRY} activeProps={{ className: "text-accent!" }}>
          <span className="relative">
            <place.icon aria-hidden className="size-5" strokeWidth={1.75} />
            {place.name === "inbox" && waiting > 0 && (
              <span className="absolute -top-2 left-2 block">
                <Count count={waiting} />
              </span>
            )}
          </span>
          {t(place.name)}
        </Link>
      ))}
      <Menu
        trigger={
          <button type="button" className={cx(ENTRY, !ON_BAR.some((name) => path.startsWith(`/${name}`)) && "text-accent!")}>
            <Ellipsis aria-hidden className="size-5" />
            {t("more", { ns: "common" })}
          </button>
        }
      >
        {rest.map((place) => (
          <MenuItem key={place.to} icon={place.icon} onSelect={() => void navigate({ to: place.to })}>
            {t(place.name)}
          </MenuItem>
        ))}
        <MenuLine />
        <MenuItem onSelect={signOut}>{t("signOut")}</MenuItem>
      </Menu>
    </nav>
  );
}
