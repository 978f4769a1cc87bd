// Files that the page hands to the browser to save.

import { announce } from "/console/dom.js";
import { t } from "/console/language.js";

/** Saves `content` as a file; nothing is sent anywhere. */
export function save(content, type, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  announce(t("file.saved", { name }));
}

/** A time as part of a file name. */
export const stamp = (time) => time.toISOString().slice(0, 19).replaceAll(":", "");
