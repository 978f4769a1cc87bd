// Colours: as the system, light or dark; remembered on this device.

import { byId } from "./dom.js";

const STORED = "ttmark-theme";
const ORDER = ["system", "light", "dark"];
const LABELS = { system: "Colours: as the system", light: "Colours: light", dark: "Colours: dark" };

/**
 * Connects the button.
 *
 * @param {(theme: string) => string} label what the button is called while a theme is chosen.
 * @returns {() => void} writes the label again.
 */
export function setUpTheme(label = (theme) => LABELS[theme]) {
  const button = byId("theme");
  let theme = ORDER.includes(localStorage.getItem(STORED)) ? localStorage.getItem(STORED) : "system";

  function apply() {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.setAttribute("aria-label", label(theme));
    button.title = label(theme);
  }

  button.addEventListener("click", () => {
    theme = ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length];
    localStorage.setItem(STORED, theme);
    apply();
  });
  apply();
  return apply;
}
