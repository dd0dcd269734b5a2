import { Archive, MessageSquare, SearchX } from "lucide-react";
import { useTranslation } from "react-i18next";
import { mayWork, useMe } from "@/api/me";
import { Empty } from "@/ui/Empty";

/** A list without chats, and why. */
export function NoChats({ search, archived }: { search: string; archived: boolean }) {
  const { t } = useTranslation("chat");
  const me = useMe();
  if (search) {
    return (
      <Empty icon={SearchX} title={t("listNothingFound")}>
        {archived ? t("listNothingFoundArchived") : t("listNothingFoundHint")}
      </Empty>
    );
  }
  if (archived) {
    return (
      <Empty icon={Archive} title={t("listNoArchived")}>
        {t("listNoArchivedHint")}
      </Empty>
    );
  }
  return (
    <Empty icon={MessageSquare} title={t("listEmpty")}>
      {mayWork(me) ? t("listEmptyHint") : t("listEmptyViewer")}
    </Empty>
  );
}
