import { Link, Outlet } from "@tanstack/react-router";
import { ShieldCheck } from "lucide-react";
import { useTranslation } from "react-i18next";
import { isAdmin, useMe } from "@/api/me";
import { useRoleText } from "@/pages/settings/role-text";
import { Empty } from "@/ui/Empty";

const TABS = [
  { to: "/admin/people", name: "tabPeople" },
  { to: "/admin/everyone", name: "tabEveryone" },
  { to: "/admin/audit", name: "tabAudit" },
] as const;

/** The pages of admins. The server decides who may read them; this only says so before it is asked. */
export function Admin() {
  const { t } = useTranslation("admin");
  const me = useMe();
  const role = useRoleText();
  if (me && !isAdmin(me)) {
    return (
      <main className="flex flex-1 items-center justify-center">
        <Empty icon={ShieldCheck} title={t("adminsOnly")}>
          {t("adminsOnlyHint", { role: role(me.user.role).name })}
        </Empty>
      </main>
    );
  }
  return (
    <div className="flex min-h-0 min-w-0 flex-1 flex-col">
      <nav aria-label={t("sections")} className="flex shrink-0 gap-1 border-b border-line bg-surface px-4 md:px-8">
        {TABS.map((tab) => (
          <Link
            key={tab.to}
            to={tab.to}
            className="touchable -mb-px inline-flex h-11 items-center border-b-2 border-transparent px-2 text-dense font-medium text-muted hover:text-ink"
            activeProps={{ className: "border-accent! text-ink!" }}
          >
            {t(tab.name)}
          </Link>
        ))}
      </nav>
      <div className="flex min-h-0 flex-1">
        <Outlet />
      </div>
    </div>
  );
}
