// The access token: asked for once, kept in this tab, and what it allows.

import { fetchKeys } from "/console/api.js";
import { announce, byId } from "/console/dom.js";
import { say, t } from "/console/language.js";
import { leaveToSignIn, signInOffer, tokenOfReturn } from "/console/sign_in.js";
import { failureWords } from "/console/words.js";

const STORED = "ttmark-token";
const EVIDENCE = "detect:evidence";

/**
 * @param {(allowed: object | null, forgotten: boolean) => void} onChange called with what the token allows; null
 *   without one, and whether what it led to is to be forgotten, too.
 * @param {() => void} goOn moves the focus to the next step after connecting.
 */
export function setUpAccess(onChange, goOn) {
  const form = byId("access");
  const field = byId("token");
  const problem = byId("access-problem");
  let token = "";

  /** Nobody who went elsewhere meanwhile is called back. */
  const here = () => form.contains(document.activeElement) || document.activeElement === document.body;

  async function connect(candidate) {
    say(problem, () => "");
    form.setAttribute("aria-busy", "true");
    try {
      const { keys, scopes, rates, limits } = await fetchKeys(candidate);
      token = candidate;
      sessionStorage.setItem(STORED, token);
      const goes = here();
      show({ token, keys, rates, limits, evidence: scopes.includes(EVIDENCE) });
      if (goes) goOn();
    } catch (error) {
      // A service that is away for a moment ends nothing.
      const refused = error.status === 401 || error.status === 403;
      if (refused) sessionStorage.removeItem(STORED);
      show(null, refused);
      say(problem, () => (error.status === 401 ? [t("failure.token"), t("failure.token_why")] : failureWords(error)).join(". "));
      if (here()) field.focus();
    } finally {
      form.removeAttribute("aria-busy");
    }
  }

  function show(allowed, forgotten = false) {
    form.hidden = allowed !== null;
    byId("sign-out").hidden = allowed === null;
    byId("connection").hidden = allowed === null;
    if (allowed) {
      const scope = allowed.evidence ? "access.connection_evidence" : "access.connection_verdict";
      say(byId("connection"), () => t(scope, { count: allowed.keys.length }));
      announce(t("access.connected"));
      field.value = "";
    }
    onChange(allowed, forgotten);
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const candidate = field.value.trim();
    if (candidate) connect(candidate);
    else askForToken();
  });
  byId("sign-out").addEventListener("click", () => {
    token = "";
    sessionStorage.removeItem(STORED);
    show(null, true);
    field.focus();
  });

  function askForToken() {
    say(problem, () => t("access.needed"));
    field.focus();
  }

  const notSignedIn = (error) => say(problem, () => [t("access.not_signed_in"), error.message].filter((part) => part).join(". "));

  /** Where people sign in at a provider, a button leads there, and whoever comes back is connected. */
  async function offerSignIn() {
    // A service that is away offers nothing; connecting says so.
    const offer = await signInOffer().catch(() => null);
    if (offer === null) return;
    const button = byId("sign-in");
    button.hidden = false;
    button.addEventListener("click", () => leaveToSignIn(offer).catch(notSignedIn));
    const returned = await tokenOfReturn(offer).catch(notSignedIn);
    if (typeof returned === "string") await connect(returned);
  }

  offerSignIn();
  const kept = sessionStorage.getItem(STORED);
  if (kept) connect(kept);
  else field.focus();
  return { askForToken };
}
