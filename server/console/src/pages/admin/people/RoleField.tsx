import { useTranslation } from "react-i18next";
import { isOwner, ROLES, useMe } from "@/api/me";
import type { RoleName } from "@/api/schema";
import { useRoleText } from "@/pages/settings/role-text";
import { Field, Select } from "@/ui/Field";

/** Chooses a role; below it stands what the role may do. */
export function RoleField({ role, onChange, service = false }: { role: RoleName; onChange: (role: RoleName) => void; service?: boolean }) {
  const { t } = useTranslation("admin");
  const me = useMe();
  const roleText = useRoleText();
  const offered = ROLES.filter((one) => one !== "owner" || (isOwner(me) && !service));
  return (
    <Field label={t("role")} hint={roleText(role).what}>
      {(control) => (
        <Select {...control} value={role} onChange={(event) => onChange(event.target.value as RoleName)}>
          {offered.map((one) => (
            <option key={one} value={one}>
              {roleText(one).name}
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}
