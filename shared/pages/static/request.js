// A request to the service that served the page, with errors in the service's own words.

export class ServiceProblem extends Error {
  /**
   * @param {number} status HTTP status; 0 when no answer came.
   * @param {object} document all that the service said.
   */
  constructor(status, message, retryAfter = null, document = {}) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
    this.document = document;
  }
}

/** The response to a GET, or to a POST where there is a body, a form or what becomes JSON, in the page's language; `token` may be empty. Throws a `ServiceProblem`, or `AbortError`. */
export async function send(path, token, body, signal) {
  const headers = { "Accept-Language": document.documentElement.lang };
  if (token) headers.Authorization = `Bearer ${token}`;
  const options = { headers, signal, cache: "no-store", credentials: "omit" };
  if (body !== undefined) {
    options.method = "POST";
    const isForm = body instanceof FormData;
    if (!isForm) options.headers["Content-Type"] = "application/json"; // of a form the browser writes the boundary
    options.body = isForm ? body : JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceProblem(0, "The service cannot be reached.");
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  const message = problem.detail ?? problem.error?.message ?? `The service answered ${response.status}.`;
  const wait = Number(response.headers.get("Retry-After"));
  throw new ServiceProblem(response.status, message, Number.isFinite(wait) && wait > 0 ? wait : null, problem);
}
