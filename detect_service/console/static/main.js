// Puts the page together: access, form, result, history.

import { setUpAccess } from "/console/access.js";
import { detect } from "/console/api.js";
import { Composer } from "/console/composer.js";
import { announce, byId } from "/console/dom.js";
import { History } from "/console/history.js";
import { setUpReport } from "/console/report.js";
import { ResultView } from "/console/result.js";
import { setUpTheme } from "/console/theme.js";
import { failureWords, verdictWords } from "/console/words.js";

let allowed = null;
let shown = null;
let running = null;

const view = new ResultView();
const history = new History((check) => {
  composer.setText(check.text, check.name);
  show(check);
});
const composer = new Composer(
  () => allowed,
  (reason) => access.askForToken(reason),
  () => {
    view.hide();
    byId("failure").hidden = true;
  },
);
const access = setUpAccess((now, forgotten) => {
  allowed = now;
  composer.showKeys(now?.keys ?? []);
  composer.showRates(now?.rates);
  if (now !== null) history.restore();
  else view.hide();
  if (forgotten) history.clear();
});

function show(check) {
  shown = check;
  byId("failure").hidden = true;
  view.show(check);
  reveal("result", "headline");
  announce(verdictWords(check).headline);
}

function showFailure(problem) {
  const [title, text] = failureWords(problem);
  view.hide();
  byId("failure-title").textContent = title;
  byId("failure-text").textContent = text;
  byId("failure").hidden = false;
  reveal("failure");
}

function reveal(id, focused) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  byId(id).scrollIntoView({ behavior: calm ? "auto" : "smooth", block: "start" });
  if (focused) byId(focused).focus({ preventScroll: true });
}

function busy(on) {
  byId("check").setAttribute("aria-busy", String(on));
  byId("check-label").textContent = on ? "Checking – press to stop" : "Check the text";
}

async function check() {
  const request = composer.request();
  if (!request) return;
  running = new AbortController();
  busy(true);
  try {
    const answer = await detect(request.mode, allowed.token, request.body, running.signal);
    const { inputs, ...options } = request.body;
    const outcome = {
      mode: request.mode,
      fpr: request.fpr,
      name: request.name,
      options,
      text: inputs[0].text,
      result: answer.results[0],
      requestId: answer.request_id,
      skippedKeys: answer.skipped_keys,
      at: new Date(),
    };
    history.add(outcome);
    show(outcome);
  } catch (error) {
    if (error.name === "AbortError") announce("Stopped.");
    else if (error.status === undefined) throw error;
    else showFailure(error);
  } finally {
    running = null;
    busy(false);
  }
}

byId("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  if (running) running.abort();
  else check();
});
setUpReport(
  () => shown,
  () => allowed?.token,
);
setUpTheme();

// Another page can hand over a text behind the `#`, which no server sees. It is shown, and not checked by itself.
const handed = new URLSearchParams(location.hash.slice(1)).get("text");
if (handed) {
  composer.setText(handed);
  globalThis.history.replaceState(null, "", location.pathname);
}
