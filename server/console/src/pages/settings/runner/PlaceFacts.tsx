import { useTranslation } from "react-i18next";
import { useMe } from "@/api/me";
import { isolationWords } from "@/i18n/isolation";
import { Dots } from "../rows/Row";
import type { PlaceToUse } from "./places";

/** Where a place is, and what it keeps apart: the folder, or what makes its sandboxes. */
export function PlaceFacts({ place, withOwner, className }: { place: PlaceToUse; withOwner?: boolean; className: string }) {
  const { t } = useTranslation("settings");
  const me = useMe();
  const { pool, owner } = place.runner;
  return (
    <Dots className={className}>
      {place.folder && <span className="font-mono wrap-anywhere">{place.folder}</span>}
      {pool && t("poolOf", { backend: pool.backend })}
      {t("isolationIs", { isolation: isolationWords(place.isolation) })}
      {withOwner && owner && owner !== me?.user.name && t("ownedBy", { name: owner })}
    </Dots>
  );
}
