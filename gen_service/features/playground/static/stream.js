// The generation service's routes: its models, and an answer as it is written.

import { send } from "/playground/request.js";

export const fetchModels = async (token) => (await (await send("/v1/models", token)).json()).data;

/**
 * The pieces of an answer: `{text, marked}` as they come, and last `{watermark}`.
 *
 * @param {{id: string, chat: boolean}} model one of `fetchModels`.
 */
export async function* write(token, model, prompt, length, signal) {
  const body = { model: model.id, max_tokens: length, stream: true, watermark: { show_blocks: true } };
  const [path, asked] = model.chat
    ? ["/v1/chat/completions", { messages: [{ role: "user", content: prompt }] }]
    : ["/v1/completions", { prompt }];
  const response = await send(path, token, { ...body, ...asked }, signal);
  for await (const chunk of events(response.body)) {
    if (chunk.error) throw new Error(chunk.error.message);
    const [choice] = chunk.choices;
    const { reasoning_content = "", content = "" } = choice?.delta ?? {};
    const text = choice?.text ?? reasoning_content + content;
    if (text) yield { text, marked: choice.watermarked };
    if (chunk.watermark) yield { watermark: chunk.watermark };
  }
}

/** The JSON objects of server-sent events; comments and the closing `[DONE]` are none. */
async function* events(body) {
  let rest = "";
  for await (const piece of body.pipeThrough(new TextDecoderStream())) {
    const blocks = (rest + piece).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const data = block.startsWith("data: ") ? block.slice(6) : "[DONE]";
      if (data !== "[DONE]") yield JSON.parse(data);
    }
  }
}
