// The detection service's routes.

import { ServiceProblem, send } from "/console/request.js";
import { route } from "/console/words.js";

const answer = async (path, token, body, signal) => (await send(path, token, body, signal)).json();

export const fetchKeys = (token) => answer("/v1/keys", token);

/** The answer about one text, or about the messages of a conversation. Throws a `ServiceProblem` where the service could not examine it. */
export async function detect(mode, token, body, signal) {
  const response = await answer(route(mode), token, body, signal);
  const [result] = response.results;
  if (result.error) throw new ServiceProblem(500, result.message.explanation);
  return response;
}

/** A signed case as a html file. */
export async function casePage(token, signedCase, text) {
  const { page } = await answer("/v1/cases/page", token, { case: signedCase, text });
  return page;
}

/** The text of a document, read by the service, or the `parts` of one that holds several. */
export const extract = (token, file, signal) => answer("/v1/extract", token, formOf(file), signal);

/** The answer about a file: its `texts`, each with its `result` or the `problem` that it has. */
export function checkFile(token, file, question, signal) {
  const form = formOf(file);
  form.append("question", JSON.stringify(question));
  form.append("text", "yes");
  return answer("/v1/content_provenance_checks", token, form, signal);
}

function formOf(file) {
  const form = new FormData();
  form.append("file", file, file.name);
  return form;
}
