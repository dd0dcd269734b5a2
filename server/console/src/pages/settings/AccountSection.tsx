import { useQuery } from "@tanstack/react-query";
import { LogOut } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { meQuery } from "@/api/me";
import { signOut } from "@/frame/account-actions";
import { Button } from "@/ui/Button";
import { ErrorNote } from "@/ui/ErrorNote";
import { Section } from "@/ui/Page";
import { Skeleton } from "@/ui/Skeleton";
import { Row, Rows } from "./rows/Row";
import { useRoleText } from "./role-text";

/** Who is signed in, and signing out. */
export function AccountSection() {
  const { t } = useTranslation("settings");
  const { data: me, error, refetch } = useQuery(meQuery);
  const role = useRoleText();
  const [leaving, setLeaving] = useState(false);
  const [failure, setFailure] = useState<unknown>();
  if (error && !me) return <ErrorNote error={error} onRetry={() => void refetch()} />;
  if (!me) return <Skeleton rows={3} />;
  const leave = async () => {
    setLeaving(true);
    setFailure(undefined);
    try {
      await signOut();
    } catch (error) {
      setFailure(error);
      setLeaving(false);
    }
  };
  const { name, what } = role(me.user.role);
  return (
    <Section title={t("navAccount")}>
      <Rows>
        <Row label={t("labelName")} sentence={t("sentenceName")} control={<Value>{me.user.name}</Value>} />
        <Row label={t("labelRole")} sentence={what} control={<Value>{name}</Value>} />
        <Row label={t("labelTenant")} sentence={t("sentenceTenant")} control={<Value>{me.tenant}</Value>} />
        <Row
          label={t("labelSignOut")}
          sentence={t("sentenceSignOut")}
          control={
            <Button icon={LogOut} busy={leaving} onClick={() => void leave()}>
              {t("signOut", { ns: "frame" })}
            </Button>
          }
          error={failure}
        />
      </Rows>
    </Section>
  );
}

function Value({ children }: { children: string }) {
  return <span className="min-w-0 font-medium wrap-anywhere">{children}</span>;
}
