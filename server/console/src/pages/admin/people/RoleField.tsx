import { useTranslation } from "react-i18next";
import { isOwner, ROLES, useMe } from "@/api/me";
import type { RoleName } from "@/api/schema";
import { Field, Select } from "@/ui/Field";

/** Chooses a role; below it stands what the role may do. */
export function RoleField({ role, onChange, service = false }: { role: RoleName; onChange: (role: RoleName) => void; service?: boolean }) {
  const { t } = useTranslation("admin");
  const me = useMe();
  const offered = ROLES.filter((one) => one !== "owner" || (isOwner(me) && !service));
  return (
    <Field label={t("role")} hint={t(`may_${role}`)}>
      {(control) => (
        <Select {...control} value={role} onChange={(event) => onChange(event.target.value as RoleName)}>
          {offered.map((one) => (
            <option key={one} value={one}>
              {t(`role_${one}`)}
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}
