// Colours: as the system, light or dark; remembered on this device.

import { byId } from "./dom.js";

const STORED = "ttmark-theme";
const ORDER = ["system", "light", "dark"];
const LABELS = { system: "Colours: as the system", light: "Colours: light", dark: "Colours: dark" };

export function setUpTheme() {
  const button = byId("theme");
  let theme = ORDER.includes(localStorage.getItem(STORED)) ? localStorage.getItem(STORED) : "system";

  function apply() {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.setAttribute("aria-label", LABELS[theme]);
    button.title = LABELS[theme];
  }

  button.addEventListener("click", () => {
    theme = ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length];
    localStorage.setItem(STORED, theme);
    apply();
  });
  apply();
}
