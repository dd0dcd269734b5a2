import { Plus } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { ErrorNote } from "@/ui/ErrorNote";
import { Card } from "@/ui/Page";
import { Made } from "./Made";
import { OpenTokens } from "./OpenTokens";
import { Options, OPTIONS_FORM } from "./Options";
import type { Enrolment } from "./useEnrolment";

/** Adds a machine: first on which terms, then the line to paste there, and who came. */
export function EnrolDialog({ enrolment, onClose }: { enrolment: Enrolment; onClose: () => void }) {
  const { t } = useTranslation("runners");
  const { terms, made, busy, error } = enrolment;
  return (
    <Dialog
      open
      wide
      // A click beside it must not lose the token.
      dismissable={!made}
      onClose={onClose}
      title={t("addMachine")}
      description={made ? undefined : t("enrolWhy")}
      actions={
        made ? (
          <>
            <Button onClick={enrolment.putAway}>{t("back", { ns: "common" })}</Button>
            <Button onClick={onClose}>{t("done", { ns: "common" })}</Button>
          </>
        ) : (
          <>
            <Button onClick={onClose}>{t("cancel", { ns: "common" })}</Button>
            <Button type="submit" form={OPTIONS_FORM} look="primary" busy={busy}>
              {t("makeLine")}
            </Button>
          </>
        )
      }
    >
      {error !== undefined && <ErrorNote error={error} className="mb-3" />}
      {made ? (
        <Made key={made.token.id} made={made} busy={busy} onAgain={enrolment.make} onClose={onClose} />
      ) : (
        <Options terms={terms} onChange={enrolment.change} onSubmit={enrolment.make} />
      )}
      <OpenTokens except={made?.token.id} />
    </Dialog>
  );
}

/** The same first step in the page, for a person who has no runner yet. */
export function FirstMachine({ enrolment }: { enrolment: Enrolment }) {
  const { t } = useTranslation("runners");
  return (
    <Card className="mx-auto max-w-2xl p-6">
      <h2 className="font-semibold">{t("emptyTitle")}</h2>
      <p className="mt-1 mb-5 text-dense text-muted">{t("emptyWhy")}</p>
      {enrolment.error !== undefined && <ErrorNote error={enrolment.error} className="mb-3" />}
      <Options terms={enrolment.terms} onChange={enrolment.change} onSubmit={enrolment.make} />
      <div className="mt-5 flex justify-end">
        <Button type="submit" form={OPTIONS_FORM} look="primary" icon={Plus} busy={enrolment.busy}>
          {t("makeLine")}
        </Button>
      </div>
      <OpenTokens except={undefined} />
    </Card>
  );
}
