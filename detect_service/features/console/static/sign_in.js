// Sign-in at the company's OpenID provider: authorization code with PKCE (RFC 7636), in this tab alone.

const STARTED = "ttmark-sign-in";

/** How people sign in here, or null where they do not. */
export async function signInOffer() {
  const response = await fetch("/console/sign-in.json");
  return response.ok ? response.json() : null;
}

/** Leaves for the provider's page, which comes back to this one. */
export async function leaveToSignIn(offer) {
  const { authorization_endpoint: endpoint } = await described(offer);
  const verifier = random(), state = random();
  sessionStorage.setItem(STARTED, JSON.stringify({ verifier, state }));
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier));
  const asked = {
    response_type: "code",
    client_id: offer.client_id,
    redirect_uri: here(),
    scope: "openid",
    state,
    code_challenge: base64url(new Uint8Array(digest)),
    code_challenge_method: "S256",
    audience: offer.audience,
  };
  // RFC 8707; a provider that knows other resources than addresses takes `audience`, or refuses what it does not know.
  if (/^https?:/.test(offer.audience)) asked.resource = offer.audience;
  location.assign(`${endpoint}?${new URLSearchParams(asked)}`);
}

/** The access token, where the provider has just sent somebody back; null: nobody comes from there. Throws an Error with what the provider said. */
export async function tokenOfReturn(offer) {
  const said = new URLSearchParams(location.search);
  const started = JSON.parse(sessionStorage.getItem(STARTED) ?? "null");
  if (!said.has("state") || !started) return null;
  sessionStorage.removeItem(STARTED);
  history.replaceState(null, "", location.pathname + location.hash);
  if (said.get("state") !== started.state || (said.has("iss") && said.get("iss") !== offer.issuer)) return null;
  if (!said.has("code")) throw new Error(said.get("error_description") ?? said.get("error") ?? "");
  const { token_endpoint: endpoint } = await described(offer);
  const body = {
    grant_type: "authorization_code",
    code: said.get("code"),
    redirect_uri: here(),
    client_id: offer.client_id,
    code_verifier: started.verifier,
  };
  if (/^https?:/.test(offer.audience)) body.resource = offer.audience;
  const response = await fetch(endpoint, { method: "POST", body: new URLSearchParams(body) });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error_description ?? answer.error ?? "");
  return answer.access_token;
}

const described = async (offer) =>
  (await fetch(`${offer.issuer.replace(/\/$/, "")}/.well-known/openid-configuration`)).json();

const here = () => location.origin + location.pathname;

const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

const base64url = (bytes) =>
  btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
