// Cases that the service keeps, where it keeps some: a button that stores one, and links that open one.

import { casePage, storeCase, storedCase } from "/console/api.js";
import { announce, byId } from "/console/dom.js";
import { say, t } from "/console/language.js";
import { flash, write } from "/console/report.js";
import { save } from "/console/saved_file.js";

/** Connects the button to the check that `current` gives, and to what `allowed` says that the token may do. */
export function setUpKeeping(current, allowed) {
  const button = byId("keep-case");
  button.addEventListener("click", async () => {
    try {
      const id = await storeCase(allowed().token, current().result.case);
      const link = `${location.origin}${location.pathname}#case=${id}`;
      const kept = t("keep.days", { count: allowed().caseDays });
      if (await write(link)) flash(button, t("keep.copied", { kept }));
      else prompt(kept, link);
    } catch (error) {
      flash(button, error.status === 429 ? t("keep.no_room") : t("keep.failed"));
    }
  });
}

/** Shows the button where it can do something. */
export function offerKeeping(check, allowed) {
  byId("keep-case").hidden = !(check?.result.case && allowed?.caseDays);
}

/** Once a token is there, opens the case that the address names: saves its page. */
export async function openLinked(token) {
  const id = new URLSearchParams(location.hash.slice(1)).get("case");
  if (!id || !/^[0-9a-f]{32}$/.test(id)) return;
  globalThis.history.replaceState(null, "", location.pathname);
  try {
    save(await casePage(token, await storedCase(token, id)), "text/html", `watermark-case-${id}.html`);
    announce(t("keep.opened"));
  } catch (error) {
    say(byId("text-problem"), () => (error.status === 404 ? t("keep.unknown") : t("keep.unreadable")));
  }
}
