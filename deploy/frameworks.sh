#!/usr/bin/env bash
# Makes .frameworks: an environment for each group of frameworks, because they ask for different versions of the same packages.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

install() {
    local folder=.frameworks/$1
    shift
    [ -x "$folder/bin/pip" ] || "$python" -m venv "$folder"
    "$folder/bin/pip" install -q "$@"
}

install langgraph langchain langchain-openai langgraph
install llama-index llama-index-llms-openai-like
install instructor instructor
install pydantic-ai 'pydantic-ai-slim[openai]'
install llm llm
if command -v npm >/dev/null; then
    npm install --silent --prefix .frameworks/node openai ai @ai-sdk/openai @ai-sdk/openai-compatible zod
fi
