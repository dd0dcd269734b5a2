import { Bot, Ellipsis, KeyRound, ShieldCheck, Trash2, User, UserPlus } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { isOwner, useMe } from "@/api/me";
import { removePerson } from "@/api/people";
import type { Person } from "@/api/schema";
import { useRoleText } from "@/pages/settings/role-text";
import { serverTime } from "@/state/clock";
import { Badge } from "@/ui/Badge";
import { IconButton } from "@/ui/Button";
import { Confirm } from "@/ui/Confirm";
import { Menu, MenuItem, MenuLine } from "@/ui/Menu";
import { Ago } from "@/ui/Time";
import { RoleDialog } from "./RoleDialog";
import { ServiceKeys } from "./ServiceKeys";

type Open = "role" | "remove" | "keys" | undefined;

/** A person or a service account: name, role, state, and what an admin may do. */
export function PersonRow({ person, onInvite }: { person: Person; onInvite: (name: string) => void }) {
  const { t } = useTranslation("admin");
  const [open, setOpen] = useState<Open>();
  const me = useMe();
  const roleText = useRoleText();
  const Icon = person.is_service ? Bot : User;
  const close = () => setOpen(undefined);
  // An admin changes no owner.
  const mayChange = person.role !== "owner" || isOwner(me);
  return (
    <li className="flex min-h-14 items-center gap-3 px-4 py-2">
      <Icon aria-hidden className="size-4 shrink-0 text-faint" />
      <div className="min-w-0 flex-1">
        <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span className="truncate font-medium">{person.name}</span>
          {person.is_you && <Badge>{t("you", { ns: "common" })}</Badge>}
        </p>
        <p className="text-meta text-muted">
          <State person={person} />
        </p>
      </div>
      <Badge tone={person.role === "owner" || person.role === "admin" ? "accent" : "neutral"}>{roleText(person.role).name}</Badge>
      <Menu trigger={<IconButton icon={Ellipsis} label={t("actionsFor", { name: person.name })} />}>
        {!person.is_service && !person.joined && (
          <MenuItem icon={UserPlus} disabled={!mayChange} onSelect={() => onInvite(person.name)}>
            {t("newInvitation")}
          </MenuItem>
        )}
        {person.is_service && (
          <MenuItem icon={KeyRound} onSelect={() => setOpen("keys")}>
            {t("keys")}
          </MenuItem>
        )}
        <MenuItem icon={ShieldCheck} disabled={!mayChange} onSelect={() => setOpen("role")}>
          {t("changeRole")}
        </MenuItem>
        <MenuLine />
        <MenuItem icon={Trash2} danger disabled={!mayChange} onSelect={() => setOpen("remove")}>
          {t("remove", { ns: "common" })}
        </MenuItem>
      </Menu>
      {open === "role" && <RoleDialog person={person} onClose={close} />}
      {open === "keys" && <ServiceKeys service={person} onClose={close} />}
      <Confirm open={open === "remove"} onClose={close} danger title={t("removeTitle", { name: person.name })} verb={t("remove", { ns: "common" })} onConfirm={() => removePerson(person.id)}>
        {t(person.is_service ? "removeServiceHint" : "removeHint")}
      </Confirm>
    </li>
  );
}

function State({ person }: { person: Person }) {
  const { t } = useTranslation("admin");
  if (person.last_used_at) {
    return (
      <>
        {t("lastSeen")} <Ago at={person.last_used_at} />
      </>
    );
  }
  if (person.is_service) return t("serviceUnused");
  if (person.joined) return t("neverSeen");
  const valid = person.invited_until && Date.parse(person.invited_until) > serverTime();
  if (!valid) return t("invitationExpired");
  return (
    <>
      {t("invitedUntil")} <Ago at={person.invited_until ?? ""} />
    </>
  );
}
