import { useId, useState } from "react";
import { useTranslation } from "react-i18next";
import { chooseLanguage, type Language, LANGUAGES, language } from "@/i18n";
import { chooseTheme, type Theme, theme } from "@/state/theme";
import { Select } from "@/ui/Field";
import { Section } from "@/ui/Page";
import { sayFailed } from "@/ui/Toast";
import { Row, Rows } from "./rows/Row";

const THEMES = [
  { value: "system", words: "themeSystem" },
  { value: "light", words: "themeLight" },
  { value: "dark", words: "themeDark" },
] as const satisfies readonly { value: Theme; words: string }[];

/** How the console looks in this browser. */
export function AppearanceSection() {
  const { t } = useTranslation("settings");
  const [chosen, setChosen] = useState(theme);
  const [themeLabel, languageLabel] = [useId(), useId()];
  const dress = (wanted: Theme) => {
    chooseTheme(wanted);
    setChosen(wanted);
  };
  const speak = (wanted: Language) => {
    chooseLanguage(wanted).catch((error: unknown) => sayFailed(t("languageFailed"), error));
  };
  return (
    <Section title={t("navAppearance")} note={t("thisBrowser")}>
      <Rows>
        <Row
          label={t("labelTheme")}
          labelId={themeLabel}
          sentence={t("sentenceTheme")}
          control={
            <Select aria-labelledby={themeLabel} value={chosen} onChange={(event) => dress(THEMES.find((one) => one.value === event.target.value)?.value ?? "system")}>
              {THEMES.map((one) => (
                <option key={one.value} value={one.value}>
                  {t(one.words)}
                </option>
              ))}
            </Select>
          }
        />
        <Row
          label={t("labelConsoleLanguage")}
          labelId={languageLabel}
          sentence={t("sentenceConsoleLanguage")}
          control={
            <Select aria-labelledby={languageLabel} value={language()} onChange={(event) => speak(event.target.value === "zh" ? "zh" : "en")}>
              {Object.entries(LANGUAGES).map(([value, name]) => (
                <option key={value} value={value} lang={value}>
                  {name}
                </option>
              ))}
            </Select>
          }
        />
      </Rows>
    </Section>
  );
}
