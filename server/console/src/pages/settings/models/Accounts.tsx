import { KeyRound, Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { removeAccount } from "@/api/models";
import type { ModelAccount, ModelProvider } from "@/api/schema";
import { Button, IconButton } from "@/ui/Button";
import { Confirm } from "@/ui/Confirm";
import { Section } from "@/ui/Page";
import { Ago } from "@/ui/Time";
import { EmptyRow } from "../rows/EmptyRow";
import { Dots, Rows } from "../rows/Row";
import { AccountDialog } from "./AccountDialog";
import { TestButton } from "./TestButton";

/** Which account the dialog is for: a new one, or the one whose key is replaced. */
type Edited = "new" | ModelAccount | undefined;

/** The accounts at providers of the person, or of everyone. */
export function Accounts({ accounts, providers, forEveryone, editable = true }: { accounts: ModelAccount[]; providers: ModelProvider[]; forEveryone?: boolean; editable?: boolean }) {
  const { t } = useTranslation("settings");
  const [edited, setEdited] = useState<Edited>();
  const [leaving, setLeaving] = useState<ModelAccount>();
  const mine = accounts.filter((account) => (account.paid_by === "tenant") === Boolean(forEveryone));
  const add = editable && (
    <Button icon={Plus} size="sm" onClick={() => setEdited("new")}>
      {t("addAccount")}
    </Button>
  );
  return (
    <Section title={t(forEveryone ? "accountsEveryone" : "accounts")} note={t(forEveryone ? "accountsEveryoneNote" : "accountsNote")} actions={mine.length > 0 && add}>
      {mine.length === 0 ? (
        <EmptyRow title={t(forEveryone ? "noAccountsEveryone" : "noAccounts")} action={add || undefined}>
          {editable && t("noAccountsWhy")}
        </EmptyRow>
      ) : (
        <Rows>
          {mine.map((account) => (
            <TestButton
              key={account.id}
              name={account.name}
              actions={
                editable && (
                  <>
                    <IconButton size="sm" icon={KeyRound} label={t("replaceKeyNamed", { name: account.name })} onClick={() => setEdited(account)} />
                    <IconButton size="sm" icon={Trash2} label={t("removeNamed", { name: account.name })} onClick={() => setLeaving(account)} />
                  </>
                )
              }
            >
              <p className="font-medium wrap-anywhere">{account.name}</p>
              <Dots className="text-meta text-faint">
                {account.provider !== account.name && account.provider}
                {account.base_url && <span className="font-mono">{account.base_url}</span>}
                {t("modelCount", { count: account.models.length })}
                {t(account.has_key ? "hasKey" : "hasNoKey")}
                <Ago at={account.changed_at} />
              </Dots>
            </TestButton>
          ))}
        </Rows>
      )}
      {edited && <AccountDialog providers={providers} forEveryone={Boolean(forEveryone)} {...(edited === "new" ? {} : { account: edited })} onClose={() => setEdited(undefined)} />}
      {leaving && (
        <Confirm open danger title={t("removeAccountTitle", { name: leaving.name })} verb={t("remove", { ns: "common" })} onClose={() => setLeaving(undefined)} onConfirm={() => removeAccount(leaving.id)}>
          {t(forEveryone ? "removeAccountEveryoneWhy" : "removeAccountWhy")}
        </Confirm>
      )}
    </Section>
  );
}
