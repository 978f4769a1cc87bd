// One box, one button, one answer in the service's own words.

import { announce, byId } from "/check/dom.js";
import { send } from "/check/request.js";
import { setUpTheme } from "/check/theme.js";

const STORED = "ttmark-public-token";
const number = new Intl.NumberFormat("en");

let token = sessionStorage.getItem(STORED) ?? "";
let asking = null;
let described = null;

function useToken(candidate) {
  token = candidate;
  if (token) sessionStorage.setItem(STORED, token);
  else sessionStorage.removeItem(STORED);
  show();
}

/** What is there to see depends on the token and on what the service says of itself. */
function show() {
  const needed = described?.token_required ?? false;
  byId("access").hidden = token !== "" || !needed;
  byId("sign-out").hidden = token === "";
  byId("program").textContent = program(needed || token !== "");
}

function program(withToken) {
  const lines = [`curl -s ${new URL(described?.endpoint ?? "/v1/detect/public", location.href)}`];
  if (withToken) lines.push('-H "Authorization: Bearer $TOKEN"');
  lines.push("-H 'Content-Type: application/json'", `-d '{"text": "The text to check."}'`);
  return lines.join(" \\\n  ");
}

function describe(document) {
  described = document;
  for (const [verdict, promise] of Object.entries(document.promises)) {
    const place = byId(`promise-${verdict}`);
    if (place) place.textContent = promise;
  }
  byId("contact").hidden = document.operator === null;
  if (document.operator !== null) byId("contact-link").href = document.operator;
  measure();
  show();
}

function measure() {
  const length = [...byId("text").value].length;
  const most = described ? ` of ${number.format(described.limits.characters)}` : "";
  byId("size").textContent = `${number.format(length)}${most} characters`;
}

function complain(problem) {
  if (problem.status !== 401 && problem.status !== 403) {
    const wait = problem.retryAfter ? ` Try again in ${duration(problem.retryAfter)}.` : "";
    byId("problem").textContent = `${problem.message}${wait}`;
    return;
  }
  byId("access-problem").textContent = token ? "This access token is not accepted." : "An access token is needed.";
  if (described) described.token_required = true;
  useToken("");
  byId("token").focus();
}

function duration(seconds) {
  if (seconds <= 120) return `${number.format(seconds)} seconds`;
  return seconds <= 7200 ? `${number.format(Math.ceil(seconds / 60))} minutes` : `${number.format(Math.ceil(seconds / 3600))} hours`;
}

async function ask() {
  const text = byId("text").value;
  byId("problem").textContent = "";
  byId("access-problem").textContent = "";
  byId("result").hidden = true;
  if (text.trim() === "") {
    byId("problem").textContent = "Paste a text first.";
    return;
  }
  asking = new AbortController();
  byId("check").setAttribute("aria-busy", "true");
  try {
    const response = await send(described?.endpoint ?? "/v1/detect/public", token, { text }, asking.signal);
    answer(await response.json());
  } catch (problem) {
    if (problem.name !== "AbortError") complain(problem);
  } finally {
    asking = null;
    byId("check").removeAttribute("aria-busy");
  }
}

function answer({ verdict, message }) {
  const result = byId("result");
  result.className = `card answer ${verdict}`;
  for (const part of ["headline", "explanation", "caution"]) byId(part).textContent = message[part];
  result.hidden = false;
  result.focus();
  announce(`${message.headline}. ${message.explanation}`);
}

byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  if (asking === null) ask();
});
byId("access").addEventListener("submit", (event) => {
  event.preventDefault();
  const candidate = byId("token").value.trim();
  byId("token").value = "";
  byId("access-problem").textContent = candidate ? "" : "Enter an access token first.";
  if (candidate) useToken(candidate);
});
byId("sign-out").addEventListener("click", () => {
  asking?.abort();
  byId("result").hidden = true;
  useToken("");
});
byId("text").addEventListener("input", measure);
setUpTheme();
measure();
show();
try {
  describe(await (await send("/.well-known/text-provenance.json", "")).json());
} catch (problem) {
  complain(problem);
}
