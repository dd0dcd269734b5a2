import { useNavigate } from "@tanstack/react-router";
import { Ellipsis, FolderOpen, type LucideIcon, PauseCircle, Pencil, Play, ShieldCheck, ShieldOff, SquareTerminal, Trash2, UserCheck, UserPlus } from "lucide-react";
import { useTranslation } from "react-i18next";
import { useMe } from "@/api/me";
import type { Runner } from "@/api/schema";
import { IconButton } from "@/ui/Button";
import { Menu, MenuItem, MenuLine } from "@/ui/Menu";
import { type Deed, deedsOf } from "./actions";

/** The icon of each deed. */
export const ICONS: Record<Deed, LucideIcon> = {
  rename: Pencil,
  share: UserPlus,
  drain: PauseCircle,
  undrain: Play,
  trust: ShieldCheck,
  distrust: ShieldOff,
  take: UserCheck,
  remove: Trash2,
};

/** What can be done to a runner beside using it. */
export function RunnerMenu({ runner, onDeed }: { runner: Runner; onDeed: (deed: Deed) => void }) {
  const { t } = useTranslation("runners");
  const me = useMe();
  const navigate = useNavigate();
  const deeds = deedsOf(runner, me);
  const search = { runner: runner.name };
  if (me?.user.role === "viewer") return null;
  return (
    <Menu trigger={<IconButton icon={Ellipsis} label={t("moreFor", { name: runner.name })} />}>
      <MenuItem icon={SquareTerminal} onSelect={() => void navigate({ to: "/terminal", search })}>
        {t("openTerminal")}
      </MenuItem>
      <MenuItem icon={FolderOpen} onSelect={() => void navigate({ to: "/files", search })}>
        {t("openFiles")}
      </MenuItem>
      {deeds.length > 0 && <MenuLine />}
      {deeds.map((deed) => (
        <MenuItem key={deed} icon={ICONS[deed]} danger={deed === "remove"} onSelect={() => onDeed(deed)}>
          {t(`${deed}Verb`)}
        </MenuItem>
      ))}
    </Menu>
  );
}
