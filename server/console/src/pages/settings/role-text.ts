import { useTranslation } from "react-i18next";

const ROLES = {
  owner: { name: "roleOwner", what: "roleOwnerWhat" },
  admin: { name: "roleAdmin", what: "roleAdminWhat" },
  member: { name: "roleMember", what: "roleMemberWhat" },
  viewer: { name: "roleViewer", what: "roleViewerWhat" },
} as const;

/** Says a role, and what it is for. */
export function useRoleText(): (role: string) => { name: string; what: string } {
  const { t } = useTranslation("settings");
  return (role) => {
    const known = Object.entries(ROLES).find(([name]) => name === role)?.[1];
    return known ? { name: t(known.name), what: t(known.what) } : { name: role, what: t("roleUnknownWhat") };
  };
}
