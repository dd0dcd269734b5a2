import { keep, kept } from "./storage";

/** Light, dark, or as the system has it. */
export type Theme = "system" | "light" | "dark";

const NAME = "gantry.theme";

/** The theme that the person chose in this browser. */
export function theme(): Theme {
  const chosen = kept(NAME);
  return chosen === "light" || chosen === "dark" ? chosen : "system";
}

/** Chooses a theme, for this browser. */
export function chooseTheme(chosen: Theme): void {
  keep(NAME, chosen === "system" ? undefined : chosen);
  applyTheme();
}

/** Shows the page in the chosen theme. */
export function applyTheme(): void {
  const chosen = theme();
  document.documentElement.style.colorScheme = chosen === "system" ? "light dark" : chosen;
}
