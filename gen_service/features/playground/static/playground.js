// Puts the playground together: access, prompt, the answer as it is written.

import { announce, byId, element } from "/playground/dom.js";
import { fetchModels, write } from "/playground/stream.js";
import { setUpTheme } from "/playground/theme.js";

const STORED = "ttmark-token";
const FOUND = {
  strong: "The console would find this text, with room for small edits.",
  weak: "The console may find this text: it is near the least that suffices.",
  none: "The console would not find this text: it is too short, or its words left too little choice.",
};
const OFF = { top_p: 1, top_k: 0, min_p: 0, repetition_penalty: 1, max_new_tokens: null };
const number = new Intl.NumberFormat("en");

let token = "";
let models = [];
let running = null;
let consoleUrl = null;

async function connect(candidate) {
  complain("");
  let next = "prompt";
  try {
    models = await fetchModels(candidate);
    token = candidate;
    sessionStorage.setItem(STORED, token);
    byId("token").value = "";
    byId("model").replaceChildren(...models.map(({ id }) => element("option", { value: id, textContent: id })));
    sampling();
    announce("Connected.");
  } catch (error) {
    token = "";
    next = "token";
    complain(error.message);
  }
  // Nobody who went elsewhere meanwhile is called back.
  const here = byId("access").contains(document.activeElement) || document.activeElement === document.body;
  byId("access").hidden = token !== "";
  byId("sign-out").hidden = token === "";
  if (here) byId(next).focus();
}

/** Requests name no sampling: what holds is the model's own. */
function sampling() {
  const values = models.find(({ id }) => id === byId("model").value)?.sampling ?? {};
  const named = Object.entries(values).filter(([name, value]) => value !== OFF[name]);
  byId("sampling").textContent = named.map(([name, value]) => `${name.replaceAll("_", " ")} ${number.format(value)}`).join(", ");
}

function signOut() {
  token = "";
  running?.abort();
  sessionStorage.removeItem(STORED);
  byId("access").hidden = false;
  byId("sign-out").hidden = true;
  byId("written").hidden = true;
  byId("answer").replaceChildren();
  byId("sampling").textContent = "";
  byId("token").focus();
}

function complain(reason) {
  byId("problem").textContent = reason;
}

function busy(on) {
  byId("write").setAttribute("aria-busy", String(on));
  byId("answer").setAttribute("aria-busy", String(on));
  byId("write-label").textContent = on ? "Stop" : "Write";
}

async function ask() {
  const prompt = byId("prompt").value.trim();
  const model = models.find(({ id }) => id === byId("model").value);
  complain("");
  if (token === "") return complain("Enter an access token first.");
  if (prompt === "" || !model) return complain(prompt === "" ? "Write a prompt first." : "The service has no model.");
  running = new AbortController();
  busy(true);
  begin();
  let text = "";
  try {
    for await (const piece of write(token, model, prompt, Number(byId("length").value), running.signal)) {
      if (piece.watermark) finish(piece.watermark);
      else {
        text += piece.text;
        draw(piece);
      }
    }
  } catch (error) {
    if (error.name !== "AbortError") complain(error.message);
  } finally {
    running = null;
    busy(false);
    if (token !== "") offer(text);
  }
  return undefined;
}

function begin() {
  byId("answer").replaceChildren();
  byId("count").textContent = "";
  byId("outcome").textContent = "";
  byId("send").hidden = true;
  byId("written").hidden = false;
}

/** A marked block has one of two shades, so that two side by side are seen as two. */
function draw({ text, marked }) {
  const answer = byId("answer");
  const blocks = answer.getElementsByTagName("mark").length;
  answer.append(marked ? element("mark", { className: `block ${blocks % 2 ? "odd" : "even"}`, textContent: text }) : text);
  const written = blocks + (marked ? 1 : 0);
  byId("count").textContent = `${number.format(written)} marked ${written === 1 ? "block" : "blocks"}`;
}

function finish({ blocks, watermarked_blocks: marked, detectability }) {
  byId("count").textContent = `${number.format(marked)} of ${number.format(blocks)} blocks carry the mark`;
  byId("outcome").textContent = FOUND[detectability] ?? "";
  announce(`Finished. ${byId("count").textContent}. ${byId("outcome").textContent}`);
}

/** The text travels behind the `#` of the console's address, which no server sees. */
function offer(text) {
  byId("send").hidden = text === "" || consoleUrl === null;
  if (consoleUrl !== null) byId("send").href = `${consoleUrl}#${new URLSearchParams({ text })}`;
}

byId("access").addEventListener("submit", (event) => {
  event.preventDefault();
  const candidate = byId("token").value.trim();
  if (candidate) connect(candidate);
  else complain("Enter an access token first.");
});
byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  if (running) running.abort();
  else ask();
});
byId("model").addEventListener("change", sampling);
byId("sign-out").addEventListener("click", signOut);
setUpTheme();
const kept = sessionStorage.getItem(STORED);
if (kept) connect(kept);
else byId("token").focus();
const settings = await (await fetch("/playground/settings.json")).json();
consoleUrl = new URL("/", settings.console_url).href;
