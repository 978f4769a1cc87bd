// The team's queue: what was added from a check, who looked at it, and what was decided.

import { addToQueue, changeInQueue, queuePage } from "/console/api.js";
import { announce, byId, element } from "/console/dom.js";
import { flash } from "/console/report.js";
import { count, failureWords } from "/console/words.js";

const words = {
  title: "The team's queue",
  about: (days) => `Names, fingerprints and verdicts, never a text. An item that nobody changes is forgotten after ${days} days; who changed what stands in the audit trail.`,
  states: { new: "new", looked_at: "looked at", decided: "decided", appealed: "appealed" },
  verdicts: { watermarked: "Watermark found", not_detected: "No watermark found", too_short: "Too short to tell" },
  all: "all",
  show: "State",
  refresh: "Refresh",
  columns: ["Document", "Answer", "log₁₀ p", "State", "Last change"],
  empty: "Nothing is in this state.",
  change: "Change",
  changeOf: (name) => `Change ${name}`,
  to: "New state",
  note: "Note",
  save: "Save",
  cancel: "Cancel",
  saved: (name, state) => `${name}: ${state}.`,
  conflict: (state, who) => `Somebody else changed it meanwhile: it is ${state} now, by token ${who}. Nothing was written. Look at it and save again if you still want to.`,
  last: ({ token_id, at, note }) => `${time.format(at * 1000)} · ${token_id}${note ? ` · ${note}` : ""}`,
  added: "In the queue",
  there: "Was in the queue",
  notAdded: "The service did not take it",
  noFingerprint: "No fingerprint here: use https",
  pasted: "Pasted text",
  addedAll: (added, there) => `${count(added)} added${there ? `, ${count(there)} were there` : ""}`,
};
const STATES = Object.keys(words.states);
const SLICE = 100;
const time = new Intl.DateTimeFormat(undefined, { dateStyle: "short", timeStyle: "short" });

/**
 * Connects the view to what `allowed` says that the token may do, and the buttons to the check that `current` gives
 * and to the checks of the list that is `shown`.
 *
 * @returns {{connected: () => void}} to be told when the token has changed.
 */
export function setUpQueue(current, allowed, shown) {
  const filter = element("select", { id: "queue-state" }, ...["", ...STATES].map((state) => element("option", { value: state, textContent: words.states[state] ?? words.all })));
  const refresh = element("button", { type: "button", className: "button", textContent: words.refresh });
  const about = element("p", { className: "muted small" });
  const problem = element("p", { className: "problem", role: "alert" });
  const body = element("tbody", { id: "queue-list" });
  const empty = element("p", { className: "muted small", textContent: words.empty, hidden: true });
  const head = element("tr", {}, ...[...words.columns, words.change].map((name) => element("th", { scope: "col", textContent: name })));
  byId("queue").replaceChildren(
    element("summary", {}, element("h2", { textContent: words.title })),
    about,
    element(
      "div",
      { className: "batch-filters" },
      element("label", { className: "select" }, element("span", { className: "option-name", textContent: words.show }), filter),
      refresh,
    ),
    problem,
    element("div", { className: "batch-scroll", tabIndex: 0, role: "region", "aria-label": words.title }, element("table", {}, element("thead", {}, head), body), empty),
  );
  let asked = 0;

  async function load() {
    const number = (asked += 1);
    problem.textContent = "";
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
      say(error);
    }
  }

  function say(error) {
    if (error.status === undefined) throw error;
    problem.textContent = failureWords(error).join(". ");
  }

  function row(item) {
    const change = element("button", { type: "button", className: "button", textContent: words.change, "aria-label": words.changeOf(item.name) });
    const shown = element(
      "tr",
      { className: item.state },
      element("td", { textContent: item.name }),
      element("td", { textContent: words.verdicts[item.verdict] }),
      element("td", { className: "probability", textContent: item.log10_p === null ? "" : item.log10_p.toFixed(1) }),
      element("td", { className: "state", textContent: words.states[item.state] }),
      element("td", { textContent: words.last(item.steps.at(-1)), title: item.steps.map(words.last).join("\n") }),
      element("td", {}, change),
    );
    change.addEventListener("click", () => edit(item, shown));
    return shown;
  }

  /** Puts a form in the place of a row; a change that somebody else made first is shown, and this one stays to be saved. */
  function edit(item, before, state = item.state, text = "", conflict = "") {
    const to = element("select", {}, ...STATES.map((value) => element("option", { value, textContent: words.states[value], selected: value === state })));
    const note = element("input", { maxLength: 1000, value: text });
    const save = element("button", { type: "submit", className: "button primary", textContent: words.save });
    const cancel = element("button", { type: "button", className: "button", textContent: words.cancel });
    const form = element(
      "form",
      { className: "queue-change" },
      element("strong", { textContent: item.name }),
      element("label", { className: "select" }, element("span", { className: "option-name", textContent: words.to }), to),
      element("label", { className: "select" }, element("span", { className: "option-name", textContent: words.note }), note),
      save,
      cancel,
      element("p", { className: "problem", role: "alert", textContent: conflict }),
    );
    const edited = element("tr", {}, element("td", { colSpan: words.columns.length + 1 }, form));
    cancel.addEventListener("click", () => edited.replaceWith(row(item)));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      save.disabled = true;
      try {
        const now = await changeInQueue(allowed().token, { id: item.id, version: item.version, state: to.value, note: note.value });
        edited.replaceWith(row(now));
        announce(words.saved(now.name, words.states[now.state]));
      } catch (error) {
        const present = error.document?.present;
        if (present) edit(present, edited, to.value, note.value, words.conflict(words.states[present.state], present.steps.at(-1).token_id));
        else {
          save.disabled = false;
          say(error);
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
        if (document === null) return flash(button, words.noFingerprint);
        const { name, result } = check;
        // The ends of names tell more: folders stand before them.
        const entry = { name: (name || words.pasted).slice(-256), document, verdict: result.verdict, log10_p: result.log10_p };
        added[(await addToQueue(allowed().token, entry)).steps.length === 1] += 1;
      }
      const one = added[true] ? words.added : words.there;
      flash(button, checks.length === 1 ? one : words.addedAll(added[true], added[false]));
    } catch (error) {
      if (error.status === undefined) throw error;
      flash(button, error.status === 429 ? failureWords(error)[1] : words.notAdded);
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
      if (days !== null) about.textContent = words.about(days);
    },
  };
}

/** The document's hash as cases have it: from its case, else from its text, where the page may compute it. */
async function fingerprint({ result, text }) {
  if (result.case) return JSON.parse(result.case).case.document;
  if (!globalThis.crypto.subtle || text === "") return null;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  return { content: "text", sha256: [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("") };
}
