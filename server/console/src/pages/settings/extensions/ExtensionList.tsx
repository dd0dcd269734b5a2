import { Ellipsis, Eye, Plus, RefreshCw, Trash2, Users } from "lucide-react";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { removeExtension } from "@/api/extensions";
import { isAdmin, useMe } from "@/api/me";
import type { Extension, ListedToolServer } from "@/api/schema";
import { signOutOf, toolServersQuery } from "@/api/tool-servers";
import { Badge } from "@/ui/Badge";
import { Button, IconButton } from "@/ui/Button";
import { Confirm } from "@/ui/Confirm";
import { Input } from "@/ui/Field";
import { Menu, MenuItem, MenuLine } from "@/ui/Menu";
import { Section } from "@/ui/Page";
import { sayFailed } from "@/ui/Toast";
import { Ago } from "@/ui/Time";
import { EmptyRow } from "../rows/EmptyRow";
import { Dots, Rows } from "../rows/Row";
import { AddExtension } from "./AddExtension";
import { aboutOf, ownBefore } from "./about";
import { KINDS, short } from "./look";
import { PublishExtension } from "./PublishExtension";
import { ShowExtension } from "./ShowExtension";
import { SignInDialog } from "./SignInDialog";

/** With more extensions than these there is a search. */
const SEARCH_FROM = 12;

type Opened = { deed: "add" } | { deed: "show" | "update" | "publish" | "remove" | "signIn"; extension: Extension };

interface ExtensionListProps {
  /** All registered extensions that the person sees. */
  all: readonly Extension[];
  /** Whose are listed. */
  layer: "user" | "tenant";
  editable: boolean;
}

/** The extensions of one layer, with adding, showing, updating, publishing and removing. */
export function ExtensionList({ all, layer, editable }: ExtensionListProps) {
  const { t } = useTranslation("settings");
  const [opened, setOpened] = useState<Opened>();
  const [search, setSearch] = useState("");
  const close = () => setOpened(undefined);
  const own = all.filter((extension) => extension.layer === layer);
  const servers = useQuery({ ...toolServersQuery, enabled: own.some((extension) => extension.kind === "mcp") }).data?.tool_servers;
  const wanted = search.trim().toLowerCase();
  const shown = own.filter((extension) => `${extension.name} ${t(KINDS[extension.kind].word)} ${aboutOf(extension)}`.toLowerCase().includes(wanted));
  const add = editable && (
    <Button icon={Plus} size="sm" onClick={() => setOpened({ deed: "add" })}>
      {t("addExtension")}
    </Button>
  );
  return (
    <Section title={t(layer === "user" ? "extensionsOwn" : "extensionsEveryone")} note={t(layer === "user" ? "extensionsOwnNote" : "extensionsEveryoneNote")} actions={own.length > 0 && add}>
      {own.length > SEARCH_FROM && (
        <Input type="search" className="mb-2" aria-label={t("searchExtensions")} placeholder={t("searchExtensions")} maxLength={200} value={search} onChange={(event) => setSearch(event.target.value)} />
      )}
      {own.length === 0 ? (
        <EmptyRow title={t("noExtensions")} action={add || undefined}>
          {t(layer === "user" ? "noExtensionsOwnWhy" : "noExtensionsEveryoneWhy")}
        </EmptyRow>
      ) : shown.length === 0 ? (
        <p className="px-1 py-4 text-dense text-muted">{t("nothingFound")}</p>
      ) : (
        <Rows>
          {shown.map((extension) => (
            <ExtensionRow key={extension.id} extension={extension} before={ownBefore(extension, all)} server={servers?.find((server) => server.id === extension.id)} editable={editable} onDeed={(deed) => setOpened({ deed, extension })} />
          ))}
        </Rows>
      )}
      {opened?.deed === "add" && <AddExtension all={all} forEveryone={layer === "tenant"} onClose={close} />}
      {opened?.deed === "update" && <AddExtension all={all} forEveryone={layer === "tenant"} start={opened.extension} onClose={close} />}
      {opened?.deed === "show" && <ShowExtension extension={opened.extension} onClose={close} />}
      {opened?.deed === "signIn" && <SignInDialog server={opened.extension.name} onClose={close} />}
      {opened?.deed === "publish" && <PublishExtension extension={opened.extension} all={all} onClose={close} />}
      {opened?.deed === "remove" && (
        <Confirm open danger title={t("removeExtensionTitle")} verb={t("remove", { ns: "common" })} onClose={close} onConfirm={() => removeExtension(opened.extension.id)}>
          <p className="font-medium text-ink wrap-anywhere">{opened.extension.name}</p>
          <p className="mt-2">{t(layer === "user" ? "removeExtensionWhy" : "removeExtensionEveryoneWhy")}</p>
        </Confirm>
      )}
    </Section>
  );
}

interface ExtensionRowProps {
  extension: Extension;
  /** The person's own one that stands before it. */
  before: Extension | undefined;
  /** The person's sign-in, of a tool server. */
  server: ListedToolServer | undefined;
  editable: boolean;
  onDeed: (deed: "show" | "update" | "publish" | "remove" | "signIn") => void;
}

function ExtensionRow({ extension, before, server, editable, onDeed }: ExtensionRowProps) {
  const { t } = useTranslation("settings");
  const admin = isAdmin(useMe());
  const { icon: Icon, word } = KINDS[extension.kind];
  const about = aboutOf(extension);
  return (
    <div className="flex items-start gap-3 px-4 py-2.5">
      <Icon aria-hidden className="mt-0.5 size-4 shrink-0 text-faint" strokeWidth={1.75} />
      <div className="min-w-0 flex-1">
        <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span className="min-w-0 font-medium wrap-anywhere">{extension.name}</span>
          <Badge>{t(word)}</Badge>
          {before && <Badge tone="warn">{t("shadowedByOwn")}</Badge>}
          {server?.sign_in === "needed" && <Badge tone="warn">{t("signInNeeded")}</Badge>}
          {server?.sign_in === "signed_in" && <Badge tone="good">{t("signedIn")}</Badge>}
        </p>
        {about && <p className="line-clamp-2 text-dense text-muted wrap-anywhere">{about}</p>}
        <Dots className="text-meta text-faint">
          {extension.source && <span className="wrap-anywhere">{t("extensionFrom", { source: extension.source })}</span>}
          <code>{short(extension.digest)}</code>
          {extension.layer === "tenant" && t("setBy", { name: extension.set_by })}
          <Ago at={extension.since} />
          {server?.issuer && t("signedInAt", { issuer: server.issuer })}
        </Dots>
      </div>
      {server?.sign_in === "needed" && (
        <Button size="sm" look="primary" aria-label={t("signInNamed", { name: extension.name })} onClick={() => onDeed("signIn")}>
          {t("signIn")}
        </Button>
      )}
      {server?.sign_in === "signed_in" && <SignOut name={extension.name} />}
      {editable ? (
        <Menu trigger={<IconButton size="sm" icon={Ellipsis} label={t("extensionMenu", { name: extension.name })} />}>
          <MenuItem icon={Eye} onSelect={() => onDeed("show")}>
            {t("showExtension")}
          </MenuItem>
          <MenuItem icon={RefreshCw} onSelect={() => onDeed("update")}>
            {t("updateExtension")}
          </MenuItem>
          {admin && extension.layer === "user" && (
            <MenuItem icon={Users} onSelect={() => onDeed("publish")}>
              {t("publishExtension")}
            </MenuItem>
          )}
          <MenuLine />
          <MenuItem icon={Trash2} danger onSelect={() => onDeed("remove")}>
            {t("remove", { ns: "common" })}
          </MenuItem>
        </Menu>
      ) : (
        <IconButton size="sm" icon={Eye} label={t("showNamed", { name: extension.name })} onClick={() => onDeed("show")} />
      )}
    </div>
  );
}

/** Gives the person's sign-in to a tool server back. */
function SignOut({ name }: { name: string }) {
  const { t } = useTranslation("settings");
  const [busy, setBusy] = useState(false);
  const leave = () => {
    setBusy(true);
    signOutOf({ server: name })
      .catch((error: unknown) => sayFailed(t("signOutFailed"), error))
      .finally(() => setBusy(false));
  };
  return (
    <Button size="sm" busy={busy} aria-label={t("signOutNamed", { name })} onClick={leave}>
      {t("signOutOf")}
    </Button>
  );
}
