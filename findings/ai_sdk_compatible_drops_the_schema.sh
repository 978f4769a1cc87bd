#!/usr/bin/env bash
# ai 7.0.173 with @ai-sdk/openai-compatible 3.0.92: where `supportsStructuredOutputs` is not set, a schema that is asked for
# (Output.object) reaches the model in no way: neither in response_format, which is json_object, nor in any message. One
# warning is printed; the call then fails where the answer does not fit by chance. With the switch the whole schema is sent.
# Prints the bodies that a server on loopback was sent; fails if that changes.
set -euo pipefail
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund ai@7.0.173 @ai-sdk/openai-compatible@3.0.92 zod@4 >/dev/null 2>&1
cat > ask.mjs <<'JS'
import { createServer } from "node:http";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, Output } from "ai";
import { z } from "zod";

const bodies = [];
const message = { role: "assistant", content: '{"whistles":true}' };
const answer = { id: "1", object: "chat.completion", created: 1, model: "m", choices: [{ index: 0, message, finish_reason: "stop" }] };
const server = createServer((request, response) => {
  let body = "";
  request.on("data", (piece) => (body += piece));
  request.on("end", () => {
    bodies.push(body);
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(answer));
  });
}).listen(0, "127.0.0.1");
await new Promise((resolve) => server.once("listening", resolve));
globalThis.AI_SDK_LOG_WARNINGS = false;
for (const supportsStructuredOutputs of [undefined, true]) {
  const baseURL = `http://127.0.0.1:${server.address().port}/v1`;
  const provider = createOpenAICompatible({ name: "p", baseURL, supportsStructuredOutputs });
  const output = Output.object({ schema: z.object({ whistles: z.boolean() }) });
  await generateText({ model: provider("m"), output, prompt: "Name a bird." });
}
server.close();
bodies.forEach((body) => console.log(body));
const told = bodies.map((body) => body.includes("whistles"));
if (told.join() !== "false,true") {
  console.log("CHANGED:", told);
  process.exit(1);
}
JS
node ask.mjs
