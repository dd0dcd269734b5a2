import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { isAdmin, useMe } from "@/api/me";
import { useWaiting } from "@/api/approvals";
import { Tooltip } from "@/ui/Tooltip";
import icon from "@/icon.svg";
import { Account } from "./Account";
import { PLACES, type PlaceOfRail } from "./places";

/** The pages, at the left edge of a wide window. */
export function Rail() {
  const { t } = useTranslation("frame");
  const me = useMe();
  return (
    <nav aria-label={t("navigation")} className="flex w-14 shrink-0 flex-col items-center gap-1 border-r border-line bg-surface py-3 max-md:hidden">
      <Link to="/chat" aria-label={t("openChat")} className="mb-3 rounded-control">
        <img src={icon} alt="" width={28} height={28} />
      </Link>
      {PLACES.filter((place) => !place.admins || isAdmin(me)).map((place) => (
        <RailLink key={place.to} place={place} />
      ))}
      <div className="mt-auto">
        <Account />
      </div>
    </nav>
  );
}

function RailLink({ place }: { place: PlaceOfRail }) {
  const { t } = useTranslation("frame");
  const waiting = useWaiting();
  const counted = place.name === "inbox" && waiting > 0;
  const label = counted ? t("inboxCount", { count: waiting }) : t(place.name);
  return (
    <Tooltip text={label} side="right">
      <Link
        to={place.to}
        aria-label={label}
        className="relative flex size-10 items-center justify-center rounded-control text-muted hover:bg-hover hover:text-ink"
        activeProps={{ className: "bg-selected text-ink!" }}
      >
        <place.icon aria-hidden className="size-5" strokeWidth={1.75} />
        {counted && <Count count={waiting} />}
      </Link>
    </Tooltip>
  );
}

/** How many wait, at the corner of an icon. */
export function Count({ count }: { count: number }) {
  return (
    <span aria-hidden className="absolute top-0.5 right-0.5 min-w-4 rounded-full bg-accent px-1 text-center text-meta leading-4 font-semibold text-on-accent">
      {count > 99 ? "99+" : count}
    </span>
  );
}
