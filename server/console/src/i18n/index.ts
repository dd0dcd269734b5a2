/**
 * The console's words, in English and Chinese.
 *
 * Each language is a chunk of its own, of which a browser loads one. `T` in a component: `useTranslation("runners")`.
 */
import i18next from "i18next";
import { initReactI18next } from "react-i18next";
import { keep, kept } from "@/state/storage";
import type { english } from "./en";
import { type PhraseBook, tellBy } from "./told";

declare module "i18next" {
  interface CustomTypeOptions {
    defaultNS: "common";
    resources: typeof english;
    enableSelector: false;
  }
}

/** The languages of the console, by what each calls itself. */
export const LANGUAGES = { en: "English", zh: "中文" } as const;

/** A language of the console. */
export type Language = keyof typeof LANGUAGES;

const NAME = "gantry.language";

/** The language that the person chose, or else the first of the browser's that the console has. */
export function language(): Language {
  const wanted = [kept(NAME), ...navigator.languages];
  for (const one of wanted) {
    if (one?.startsWith("zh")) return "zh";
    if (one?.startsWith("en")) return "en";
  }
  return "en";
}

interface Words {
  readonly areas: Readonly<Record<string, Record<string, string>>>;
  /** The server's sentences; absent in its own language. */
  readonly told?: PhraseBook;
}

async function words(wanted: Language): Promise<Words> {
  if (wanted === "en") return { areas: (await import("./en")).english };
  const { chinese, told } = await import("./zh");
  return { areas: chinese, told };
}

/** Loads the words of the chosen language. Resolves before the page is shown, so that no name is seen for a word. */
export async function startWords(): Promise<void> {
  const first = language();
  const { areas, told } = await words(first);
  tellBy(told);
  await i18next.use(initReactI18next).init({
    lng: first,
    fallbackLng: false,
    defaultNS: "common",
    resources: { [first]: areas },
    // React escapes what it shows.
    interpolation: { escapeValue: false },
  });
  document.documentElement.lang = first;
}

/** Chooses a language, for this browser. */
export async function chooseLanguage(chosen: Language): Promise<void> {
  keep(NAME, chosen);
  const { areas, told } = await words(chosen);
  for (const [area, entries] of Object.entries(areas)) i18next.addResourceBundle(chosen, area, entries, true, true);
  tellBy(told);
  await i18next.changeLanguage(chosen);
  document.documentElement.lang = chosen;
}
