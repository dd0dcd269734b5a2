import { useTranslation } from "react-i18next";

/** What rights a machine gives, and how they end. */
export function Rights({ name }: { name: string }) {
  const { t } = useTranslation("runners");
  return (
    <section>
      <h3 className="text-dense font-semibold">{t("rightsTitle")}</h3>
      <ul className="mt-1 flex list-disc flex-col gap-1 pl-5 text-dense text-muted">
        <li>{t("rightsCommands")}</li>
        <li>{t("rightsFiles")}</li>
        <li>{t("rightsIsolation")}</li>
        <li>{t("rightsWho")}</li>
        <li>{t("rightsPolicy")}</li>
        <li>
          {name ? t("rightsEndNamed", { name }) : t("rightsEnd")} <code className="text-code">gantry-runner uninstall</code>
        </li>
      </ul>
    </section>
  );
}
