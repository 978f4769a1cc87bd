// Puts the page together: access, form, result, history.

import { setUpAccess } from "/console/access.js";
import { detect } from "/console/api.js";
import { Batch } from "/console/batch.js";
import { Composer } from "/console/composer.js";
import { announce, byId } from "/console/dom.js";
import { History } from "/console/history.js";
import { onLanguage, say, t } from "/console/language.js";
import { askAboutFile, holdsSeveral, readTexts } from "/console/read_file.js";
import { setUpReport } from "/console/report.js";
import { ResultView } from "/console/result.js";
import { setUpTheme } from "/console/theme.js";
import { failureWords, verdictWords } from "/console/words.js";

let allowed = null;
let shown = null;
let running = null;

const view = new ResultView();
const history = new History((check) => {
  if (!running && batch.size === 0 && !check.options.conversation) composer.setText(check.text, check.name, check.pages);
  show(check);
});
const batch = new Batch((check) => show(check));
const composer = new Composer(() => allowed, () => access.askForToken(), batch, clear);
const connected = (now, forgotten) => {
  allowed = now;
  composer.showKeys(now?.keys ?? []);
  composer.showRates(now?.rates);
  if (now !== null) {
    history.restore();
    batch.restore();
  } else {
    running?.abort();
    view.hide();
  }
  if (forgotten) {
    history.clear();
    batch.forget();
  }
};
// A refused token takes no text away that somebody has just pasted.
byId("sign-out").addEventListener("click", () => composer.setText(""));
const access = setUpAccess(connected, () => byId(batch.size ? "check" : "text").focus());

function show(check) {
  shown = check;
  byId("failure").hidden = true;
  view.show(check);
  reveal("result", "headline");
  announce(verdictWords(check).headline);
}

function clear() {
  view.hide();
  byId("failure").hidden = true;
}

function showFailure(problem) {
  view.hide();
  say(byId("failure-title"), () => failureWords(problem)[0]);
  say(byId("failure-text"), () => failureWords(problem)[1]);
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
  byId("composer").setAttribute("aria-busy", String(on));
  byId("text").readOnly = on && batch.size > 0;
  const what = on ? "composer.stop" : batch.size ? "composer.check_files" : "composer.check";
  const count = batch.size;
  say(byId("check-label"), () => t(what, { count }));
}

/** Asks about one text, and keeps the answer. */
async function examine(options, text, name, pages) {
  const check = { ...(await ask(options, [{ text }], name)), pages };
  history.add(check);
  return check;
}

/** Asks about messages as one conversation, and keeps the answer. */
async function examineTogether({ fpr, body }, messages) {
  const options = { mode: "combined", fpr, body: { ...body, evidence: "none", case: false, conversation: true } };
  const check = await ask(options, messages, t("batch.conversation_name", { count: messages.length }));
  history.add(check);
  return check;
}

async function ask(options, inputs, name) {
  running.signal.throwIfAborted();
  const answer = await detect(options.mode, allowed.token, { ...options.body, inputs }, running.signal);
  return checkOf(options, inputs.map((one) => one.text).join("\n\n"), name, answer.results[0], answer);
}

function checkOf(options, text, name, result, answer) {
  return {
    mode: options.mode,
    fpr: options.fpr,
    name,
    options: options.body,
    text,
    result,
    requestId: answer.request_id,
    skippedKeys: answer.skipped_keys,
    at: new Date(),
  };
}

async function checkText() {
  const request = composer.request();
  if (!request) return;
  await whileBusy(async () => show(await examine(request.options, request.text, request.name, request.pages)));
}

async function checkFiles() {
  const options = composer.options();
  if (!options) return;
  clear();
  reveal("batch");
  await whileBusy(async (signal) => {
    const read = async (file, name) => {
      const texts = await readTexts(file, name, allowed, signal);
      return texts.map((one) => ({ ...one, text: one.text.toWellFormed() }));
    };
    if (byId("conversation").checked) {
      const check = await batch.runTogether(read, (messages) => examineTogether(options, messages));
      if (check) show(check);
    } else {
      const examineOne = async ({ text, attachment, pages }, name) => {
        const check = await ask(options, [attachment ? { text, attachment } : { text }], name);
        return { ...check, pages };
      };
      const question = { mode: options.mode, ...options.body };
      const checked = ({ text, name, pages }, result, answer) => ({ ...checkOf(options, text, name, result, answer), pages });
      // The texts of a table or a mailbox are too many for one request: each is asked about by itself.
      const readOrAsk = (file, name) =>
        holdsSeveral(file.name) ? read(file, name) : askAboutFile(file, name, allowed, question, checked, signal);
      await batch.run(readOrAsk, examineOne, signal, JSON.stringify(options));
    }
  });
}

async function whileBusy(work) {
  running = new AbortController();
  busy(true);
  try {
    await work(running.signal);
  } catch (error) {
    if (error.name === "AbortError") announce(t("composer.stopped"));
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
  else if (batch.size) checkFiles();
  else checkText();
});
setUpReport(
  () => shown,
  () => allowed?.token,
);
onLanguage(setUpTheme((theme) => t(`theme.${theme}`)));
onLanguage(() => view.sayAgain());

// Another page can hand over a text behind the `#`, which no server sees. It is shown, and not checked by itself.
const handed = new URLSearchParams(location.hash.slice(1));
if (handed.get("text")) composer.setText(handed.get("text"));
else if (handed.get("case")) say(byId("text-problem"), () => t("composer.kept_case")); // a link of releases that kept cases
if (handed.get("text") || handed.get("case")) globalThis.history.replaceState(null, "", location.pathname);
