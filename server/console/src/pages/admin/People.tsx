import { useInfiniteQuery } from "@tanstack/react-query";
import { Bot, UserPlus, Users } from "lucide-react";
import { useDeferredValue, useState } from "react";
import { useTranslation } from "react-i18next";
import { peopleQuery } from "@/api/people";
import { Button } from "@/ui/Button";
import { Empty } from "@/ui/Empty";
import { ErrorNote } from "@/ui/ErrorNote";
import { Input } from "@/ui/Field";
import { Card, Page } from "@/ui/Page";
import { Skeleton } from "@/ui/Skeleton";
import { AddServiceDialog } from "./people/AddServiceDialog";
import { InviteDialog } from "./people/InviteDialog";
import { PersonRow } from "./people/PersonRow";

/** Who works in this tenant, with which role; and the service accounts of programs. */
export function People() {
  const { t } = useTranslation("admin");
  const [search, setSearch] = useState("");
  const [inviting, setInviting] = useState<string | undefined>();
  const [adding, setAdding] = useState(false);
  const list = useInfiniteQuery(peopleQuery(useDeferredValue(search.trim())));
  const everyone = list.data?.pages.flatMap((page) => page.people) ?? [];
  const people = everyone.filter((person) => !person.is_service);
  const services = everyone.filter((person) => person.is_service);
  return (
    <Page
      title={t("people")}
      actions={
        <>
          <Button icon={Bot} onClick={() => setAdding(true)}>
            {t("addService")}
          </Button>
          <Button look="primary" icon={UserPlus} onClick={() => setInviting("")}>
            {t("invite")}
          </Button>
        </>
      }
    >
      <Input type="search" aria-label={t("searchPeople")} placeholder={t("searchPeople")} value={search} maxLength={100} onChange={(event) => setSearch(event.target.value)} className="mb-4 max-w-80" />
      {list.isError && <ErrorNote error={list.error} title={t("peopleFailed")} onRetry={() => void list.refetch()} />}
      {list.isPending && <Skeleton rows={4} className="h-14" />}
      {list.isSuccess && everyone.length === 0 && <Empty icon={Users} title={t("noPeople")} />}
      {people.length > 0 && (
        <Card>
          <ul aria-label={t("people")} className="divide-y divide-line">
            {people.map((person) => (
              <PersonRow key={person.id} person={person} onInvite={setInviting} />
            ))}
          </ul>
        </Card>
      )}
      {services.length > 0 && (
        <section className="mt-8">
          <h2 className="font-semibold">{t("services")}</h2>
          <p className="mb-2 text-dense text-muted">{t("servicesHint")}</p>
          <Card>
            <ul aria-label={t("services")} className="divide-y divide-line">
              {services.map((person) => (
                <PersonRow key={person.id} person={person} onInvite={setInviting} />
              ))}
            </ul>
          </Card>
        </section>
      )}
      {list.hasNextPage && (
        <div className="mt-4 text-center">
          <Button busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            {t("showMore", { ns: "common" })}
          </Button>
        </div>
      )}
      {inviting !== undefined && <InviteDialog name={inviting} onClose={() => setInviting(undefined)} />}
      {adding && <AddServiceDialog onClose={() => setAdding(false)} />}
    </Page>
  );
}
