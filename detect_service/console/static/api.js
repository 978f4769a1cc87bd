// The detection service's routes, with errors in the service's own words.

import { route } from "/console/words.js";

export class ServiceProblem extends Error {
  /** @param {number} status HTTP status; 0 when no answer came. */
  constructor(status, detail, code = "", retryAfter = null) {
    super(detail);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter;
  }
}

async function send(path, token, body, signal) {
  const options = { headers: { Authorization: `Bearer ${token}` }, signal, cache: "no-store", credentials: "omit" };
  if (body !== undefined) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceProblem(0, "The service cannot be reached.");
  }
  if (response.ok) return response.json();
  const problem = await response.json().catch(() => ({}));
  const wait = Number(response.headers.get("Retry-After"));
  throw new ServiceProblem(
    response.status,
    problem.detail ?? `The service answered ${response.status}.`,
    problem.code,
    Number.isFinite(wait) && wait > 0 ? wait : null,
  );
}

export const fetchKeys = (token) => send("/v1/keys", token);

export const detect = (mode, token, body, signal) => send(route(mode), token, body, signal);

/** A signed case as a html file. */
export async function casePage(token, signedCase, text) {
  const { page } = await send("/v1/cases/page", token, { case: signedCase, text });
  return page;
}

/** The text of a docx, html or pdf file, read by the service. */
export async function extract(token, file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  const { text } = await send("/v1/extract", token, { filename: file.name, content: btoa(binary) });
  return text;
}
