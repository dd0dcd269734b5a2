import { useState } from "react";
import { useTranslation } from "react-i18next";
import { changeRole } from "@/api/people";
import type { Person } from "@/api/schema";
import { FormDialog } from "@/ui/FormDialog";
import { RoleField } from "./RoleField";

/** Gives a person another role. It counts at once, also for pages that are open. */
export function RoleDialog({ person, onClose }: { person: Person; onClose: () => void }) {
  const { t } = useTranslation("admin");
  const [role, setRole] = useState(person.role);
  return (
    <FormDialog
      onClose={onClose}
      title={t("roleTitle", { name: person.name })}
      description={t("roleHint")}
      verb={t("changeRole")}
      ready={role !== person.role}
      onSubmit={() => changeRole(person.id, role).then(onClose)}
    >
      <RoleField role={role} onChange={setRole} service={person.is_service ?? false} />
    </FormDialog>
  );
}
