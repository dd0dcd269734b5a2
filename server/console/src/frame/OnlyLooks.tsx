import { Eye } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Empty } from "@/ui/Empty";

/** Stands where a viewer would find work to begin. */
export function OnlyLooks() {
  const { t } = useTranslation("common");
  return (
    <Empty icon={Eye} title={t("viewerOnly")}>
      {t("viewerOnlyHint")}
    </Empty>
  );
}
