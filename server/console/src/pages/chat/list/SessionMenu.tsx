import { Archive, ArchiveRestore, Pencil, Share2, Trash2 } from "lucide-react";
import { useNavigate, useParams } from "@tanstack/react-router";
import { type ReactElement, useState } from "react";
import { useTranslation } from "react-i18next";
import { mayWork, useMe } from "@/api/me";
import { changeSessions, deleteSessions } from "@/api/sessions";
import type { Session } from "@/api/schema";
import { Confirm } from "@/ui/Confirm";
import { Menu, MenuItem, MenuLine } from "@/ui/Menu";
import { say, sayFailed } from "@/ui/Toast";
import { RenameDialog } from "./RenameDialog";
import { ShareDialog } from "./ShareDialog";

type Opened = "rename" | "share" | "delete";

/** What can be done with a chat: rename, share, archive, delete. `trigger` is the button that opens the menu. */
export function SessionMenu({ session, trigger }: { session: Session; trigger: ReactElement }) {
  const { t } = useTranslation(["chat", "common"]);
  const [opened, setOpened] = useState<Opened>();
  const navigate = useNavigate();
  const me = useMe();
  const shown = useParams({ strict: false }).session;
  const archived = session.archived_at != null;
  if (!mayWork(me)) return null;
  const close = () => setOpened(undefined);
  const archive = () => {
    changeSessions([session.id], { archived: !archived }).then(
      () => say(archived ? t("listUnarchived") : t("listArchived")),
      (error: unknown) => sayFailed(archived ? t("listUnarchiveFailed") : t("listArchiveFailed"), error),
    );
  };
  const remove = async () => {
    await deleteSessions([session.id]);
    if (shown === session.id) await navigate({ to: "/chat", search: true });
  };
  return (
    <>
      <Menu trigger={trigger}>
        <MenuItem icon={Pencil} onSelect={() => setOpened("rename")}>
          {t("common:rename")}
        </MenuItem>
        <MenuItem icon={Share2} onSelect={() => setOpened("share")}>
          {t("listShare")}
        </MenuItem>
        <MenuItem icon={archived ? ArchiveRestore : Archive} onSelect={archive}>
          {archived ? t("listUnarchive") : t("listArchive")}
        </MenuItem>
        <MenuLine />
        <MenuItem icon={Trash2} danger onSelect={() => setOpened("delete")}>
          {t("common:delete")}
        </MenuItem>
      </Menu>
      {opened === "rename" && <RenameDialog session={session} onClose={close} />}
      {opened === "share" && <ShareDialog session={session} onClose={close} />}
      <Confirm open={opened === "delete"} onClose={close} title={t("listDeleteTitle")} verb={t("common:delete")} danger onConfirm={remove}>
        <p className="mb-2 font-medium wrap-anywhere text-ink">{session.title || t("listUntitled")}</p>
        <p>{t("listDeleteLost", { count: 1 })}</p>
      </Confirm>
    </>
  );
}
