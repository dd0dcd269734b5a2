import { Link } from "@tanstack/react-router";
import { Server } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { State } from "@/pages/runners/State";
import { mayWork, useMe } from "@/api/me";
import { Badge } from "@/ui/Badge";
import { Button } from "@/ui/Button";
import { Empty } from "@/ui/Empty";
import { Input } from "@/ui/Field";
import { Card } from "@/ui/Page";
import { Rows } from "../rows/Row";
import { PlaceFacts } from "./PlaceFacts";
import { foundIn, type PlaceToUse } from "./places";

/** With more places than these there is a search. */
const SEARCH_FROM = 8;

/** The places that the person may choose. `pending` is the choice on its way to the server. */
export function PlaceList({ places, pending, onUse }: { places: PlaceToUse[]; pending: string | undefined; onUse: (choice: string) => void }) {
  const { t } = useTranslation("settings");
  const me = useMe();
  const [search, setSearch] = useState("");
  if (places.length === 0 && !mayWork(me)) {
    return (
      <Card>
        <Empty icon={Server} title={t("noRunnerShared")}>
          {t("noRunnerSharedWhy")}
        </Empty>
      </Card>
    );
  }
  if (places.length === 0) {
    return (
      <Card>
        <Empty
          icon={Server}
          title={t("noRunnersYet")}
          action={
            <Link to="/runners" search={{ enrol: 1 }} className="touchable inline-flex h-8 items-center rounded-control bg-accent px-3 font-medium text-on-accent hover:bg-accent-hover">
              {t("addRunner")}
            </Link>
          }
        >
          {t("noRunnersYetWhy")}
        </Empty>
      </Card>
    );
  }
  const shown = foundIn(places, search);
  return (
    <>
      {places.length > SEARCH_FROM && (
        <Input type="search" className="mb-2" aria-label={t("searchRunners")} placeholder={t("searchRunners")} maxLength={200} value={search} onChange={(event) => setSearch(event.target.value)} />
      )}
      {shown.length === 0 ? (
        <p className="px-1 py-4 text-dense text-muted">{t("nothingFound")}</p>
      ) : (
        <Rows>
          {shown.map((place) => (
            <div key={place.choice} className="flex items-center gap-3 px-4 py-2.5">
              <div className="min-w-0 flex-1">
                <p className="flex flex-wrap items-center gap-x-3">
                  <span className="min-w-0 font-medium wrap-anywhere">{place.name}</span>
                  <span className="text-meta text-muted">
                    <State runner={place.runner} />
                  </span>
                </p>
                <PlaceFacts withOwner place={place} className="text-meta text-faint" />
              </div>
              {place.inUse ? (
                <Badge tone="accent">{t("inUse")}</Badge>
              ) : (
                mayWork(me) && (
                  <Button size="sm" disabled={pending !== undefined} busy={pending === place.choice} aria-label={t("useNamed", { name: place.name })} onClick={() => onUse(place.choice)}>
                    {t("use")}
                  </Button>
                )
              )}
            </div>
          ))}
        </Rows>
      )}
    </>
  );
}
