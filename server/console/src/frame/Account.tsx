import { CircleUser, Keyboard, LogOut, Moon, Sun } from "lucide-react";
import { useTranslation } from "react-i18next";
import { useMe } from "@/api/me";
import { chooseLanguage, LANGUAGES, language } from "@/i18n";
import { useRoleText } from "@/pages/settings/role-text";
import { chooseTheme } from "@/state/theme";
import { IconButton } from "@/ui/Button";
import { Menu, MenuItem, MenuLine } from "@/ui/Menu";
import { useSignOut } from "./account-actions";
import { openLayer } from "./layers";

/** True if the page is dark now, by choice or by the system. */
export function isDark(): boolean {
  const scheme = document.documentElement.style.colorScheme;
  return scheme === "dark" || (scheme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
}

/** The menu of the person who is signed in. */
export function Account() {
  const { t } = useTranslation("frame");
  const me = useMe();
  const signOut = useSignOut();
  const role = useRoleText();
  const other = language() === "zh" ? "en" : "zh";
  const label = me ? t("signedInAs", { name: me.user.name, role: role(me.user.role).name }) : t("loading", { ns: "common" });
  return (
    <Menu align="start" trigger={<IconButton icon={CircleUser} label={label} />}>
      <p className="px-2 py-1 text-meta text-muted">{label}</p>
      <MenuLine />
      <MenuItem icon={isDark() ? Sun : Moon} onSelect={() => chooseTheme(isDark() ? "light" : "dark")}>
        {t("switchTheme")}
      </MenuItem>
      <MenuItem onSelect={() => void chooseLanguage(other)}>
        <span lang={other}>{LANGUAGES[other]}</span>
      </MenuItem>
      <MenuItem icon={Keyboard} keys="?" onSelect={() => openLayer("help")}>
        {t("keyboard")}
      </MenuItem>
      <MenuLine />
      <MenuItem icon={LogOut} onSelect={signOut}>
        {t("signOut")}
      </MenuItem>
    </Menu>
  );
}
