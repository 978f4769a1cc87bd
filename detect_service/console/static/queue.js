// The team's queue: what was added from a check, who looked at it, and what was decided.

import { addToQueue, changeInQueue, queuePage } from "/console/api.js";
import { announce, byId, element } from "/console/dom.js";
import { dateTime, say, t } from "/console/language.js";
import { flash } from "/console/report.js";
import { chance, failureWords } from "/console/words.js";

const STATES = ["new", "looked_at", "decided", "appealed"];
const COLUMNS = ["document", "answer", "probability", "state", "last", "change"];
const VERDICTS = { watermarked: "help.found", not_detected: "help.none", too_short: "help.short" };
const SLICE = 100;

/**
 * Connects the view to what `allowed` says that the token may do, and the buttons to the check that `current` gives
 * and to the checks of the list that is `shown`.
 *
 * @returns {{connected: () => void}} to be told when the token has changed.
 */
export function setUpQueue(current, allowed, shown) {
  const filter = element("select", { id: "queue-state" }, ...["all", ...STATES].map((state) => stateOption(state, state === "all" ? "" : state)));
  const refresh = said("button", { type: "button", className: "button" }, "queue.refresh");
  const about = element("p", { className: "muted small" });
  const problem = element("p", { className: "problem", role: "alert" });
  const body = element("tbody", { id: "queue-list" });
  const empty = said("p", { className: "muted small", hidden: true }, "queue.empty");
  const head = element("tr", {}, ...COLUMNS.map((column) => said("th", { scope: "col" }, `queue.column_${column}`)));
  const table = element("table", {}, element("thead", {}, head), body);
  byId("queue").replaceChildren(
    element("summary", {}, said("h2", {}, "queue.title")),
    about,
    element("div", { className: "batch-filters" }, labelled("queue.show", filter), refresh),
    problem,
    say(element("div", { className: "batch-scroll", tabIndex: 0, role: "region" }, table, empty), () => t("queue.title"), "ariaLabel"),
  );
  let asked = 0;

  async function load() {
    const number = (asked += 1);
    say(problem, () => "");
    try {
      for (let offset = 0; offset !== null; ) {
        const page = await queuePage(allowed().token, filter.value, offset, SLICE);
        if (number !== asked) return;
        if (offset === 0) body.replaceChildren();
        body.append(...page.items.map(row));
        offset = page.next_offset;
        await new Promise(requestAnimationFrame);
      }
      empty.hidden = body.children.length > 0;
    } catch (error) {
      complain(error);
    }
  }

  function complain(error) {
    if (error.status === undefined) throw error;
    say(problem, () => failureWords(error).join(". "));
  }

  function row(item) {
    const change = said("button", { type: "button", className: "button" }, "queue.column_change");
    say(change, () => t("queue.change_of", { name: item.name }), "ariaLabel");
    const last = say(element("td"), () => step(item.steps.at(-1)));
    const shown = element(
      "tr",
      { className: item.state },
      element("td", { textContent: item.name }),
      say(element("td"), () => t(VERDICTS[item.verdict])),
      say(element("td", { className: "probability" }), () => chance(item.log10_p)),
      said("td", { className: "state" }, `queue.state_${item.state}`),
      say(last, () => item.steps.map(step).join("\n"), "title"),
      element("td", {}, change),
    );
    change.addEventListener("click", () => edit(item, shown));
    return shown;
  }

  /** Puts a form in the place of a row; a change that somebody else made first is shown, and this one stays to be saved. */
  function edit(item, before, state = item.state, text = "", conflict = () => "") {
    const to = element("select", {}, ...STATES.map((value) => stateOption(value)));
    to.value = state;
    const note = element("input", { maxLength: 1000, value: text });
    const save = said("button", { type: "submit", className: "button primary" }, "queue.save");
    const cancel = said("button", { type: "button", className: "button" }, "queue.cancel");
    const form = element(
      "form",
      { className: "queue-change" },
      element("strong", { textContent: item.name }),
      labelled("queue.to", to),
      labelled("queue.note", note),
      save,
      cancel,
      say(element("p", { className: "problem", role: "alert" }), conflict),
    );
    const edited = element("tr", {}, element("td", { colSpan: COLUMNS.length }, form));
    cancel.addEventListener("click", () => edited.replaceWith(row(item)));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      save.disabled = true;
      try {
        const now = await changeInQueue(allowed().token, { id: item.id, version: item.version, state: to.value, note: note.value });
        edited.replaceWith(row(now));
        announce(t("queue.saved", { name: now.name, state: t(`queue.state_${now.state}`) }));
      } catch (error) {
        const present = error.document?.present;
        if (present) edit(present, edited, to.value, note.value, () => conflictWords(present));
        else {
          save.disabled = false;
          complain(error);
        }
      }
    });
    before.replaceWith(edited);
    to.focus();
  }

  filter.addEventListener("change", load);
  refresh.addEventListener("click", load);
  byId("queue").addEventListener("toggle", () => {
    if (byId("queue").open) load();
  });
  const add = byId("add-to-queue");
  add.addEventListener("click", () => addAll(add, [current()]));
  const addShown = byId("batch-queue");
  addShown.addEventListener("click", () => addAll(addShown, shown()));

  async function addAll(button, checks) {
    const added = { true: 0, false: 0 };
    button.disabled = true;
    try {
      for (const check of checks) {
        const document = await fingerprint(check);
        if (document === null) return flash(button, t("queue.no_fingerprint"));
        const { name, result } = check;
        // The ends of names tell more: folders stand before them.
        const entry = { name: (name || t("queue.pasted")).slice(-256), document, verdict: result.verdict, log10_p: result.log10_p };
        added[(await addToQueue(allowed().token, entry)).steps.length === 1] += 1;
      }
      const one = added[true] ? "queue.added" : "queue.there";
      const all = added[false] ? "queue.added_some" : "queue.added_all";
      flash(button, t(checks.length === 1 ? one : all, { count: added[true], there: added[false] }));
    } catch (error) {
      if (error.status === undefined) throw error;
      flash(button, error.status === 429 ? failureWords(error)[1] : t("queue.not_added"));
    } finally {
      button.disabled = false;
      if (byId("queue").open) load();
    }
  }

  return {
    connected() {
      const days = allowed()?.queueDays ?? null;
      add.hidden = addShown.hidden = days === null;
      byId("queue").hidden = days === null || !allowed().evidence;
      byId("queue").open = false;
      body.replaceChildren();
      if (days !== null) say(about, () => t("queue.about", { count: days }));
    },
  };
}

/** An element that says a sentence of the catalogue. */
const said = (tag, properties, key) => say(element(tag, properties), () => t(key));

const labelled = (key, field) => element("label", { className: "select" }, said("span", { className: "option-name" }, key), field);

const stateOption = (state, value = state) => said("option", { value }, `queue.state_${state}`);

const step = ({ token_id, at, note }) => [dateTime(at * 1000), token_id, ...(note ? [note] : [])].join(" · ");

const conflictWords = ({ state, steps }) => t("queue.conflict", { state: t(`queue.state_${state}`), token: steps.at(-1).token_id });

/** The document's hash as cases have it: from its case, else from its text, where the page may compute it. */
async function fingerprint({ result, text }) {
  if (result.case) return JSON.parse(result.case).case.document;
  if (!globalThis.crypto.subtle || text === "") return null;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return { content: "text", sha256: [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("") };
}
