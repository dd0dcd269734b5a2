import { useState } from "react";
import { useTranslation } from "react-i18next";
import { addService } from "@/api/people";
import type { RoleName } from "@/api/schema";
import { FormDialog } from "@/ui/FormDialog";
import { useIdempotencyKey } from "@/ui/useIdempotencyKey";
import { NameField } from "./NameField";
import { RoleField } from "./RoleField";

/** Adds a service account. Its keys are made afterwards, in its row. */
export function AddServiceDialog({ onClose }: { onClose: () => void }) {
  const { t } = useTranslation("admin");
  const [name, setName] = useState("");
  const [role, setRole] = useState<RoleName>("member");
  const key = useIdempotencyKey([name, role]);
  return (
    <FormDialog onClose={onClose} title={t("addServiceTitle")} description={t("servicesHint")} verb={t("addService")} onSubmit={() => addService(name.trim(), role, key).then(onClose)}>
      <div className="flex flex-col gap-4">
        <NameField autoFocus name={name} onChange={setName} />
        <RoleField service role={role} onChange={setRole} />
      </div>
    </FormDialog>
  );
}
