"""What a newcomer does after the demonstration: commands that work as they are printed."""

import json
import shlex
import shutil
import sys
from pathlib import Path

from ttmark.services.cli.options import TOKEN_FILE
from ttmark.services.local.processes import LocalServices
from ttmark.shared.features import modules_of

CHAT_QUESTION = "What makes a good breakfast?"
PROMPT = "The old lighthouse stood"
GEN_URL, DETECT_URL = "http://127.0.0.1:8000", "http://127.0.0.1:8001"


_STEPS = """\
Open the console, to look at texts in a browser
{pages}

{title}
  curl -sN {gen_url}{path} \\
    -H "Authorization: Bearer $(cat {quoted_file})" -H "Content-Type: application/json" \\
    -d {body}

Detect
  curl -s {detect_url}/v1/detect \\
    -H "Authorization: Bearer $(cat {quoted_file})" -H "Content-Type: application/json" \\
    -d '{{"inputs": [{{"text": "paste a text here"}}]}}'

The same with `ttmark`
  {program} generate {question}{gen_option}{token_option} > text.txt
  {program} detect text.txt{detect_option}{token_option}

Python, after `pip install openai`
  from openai import OpenAI
  client = OpenAI(base_url='{gen_url}/v1', api_key=open({token_file!r}).read().strip())
  answer = client.{endpoint}.create(
      {arguments}
  )
  print(answer.choices[0].{content})

"""


def next_steps(services: LocalServices, *, chat: bool) -> str:
    """Headings, and indented below each what to type."""
    setup = services.setup
    options: dict[str, object] = {"model": setup.model_id, "max_tokens": 200}
    if chat:
        path, endpoint, content = "/v1/chat/completions", "chat.completions", "message.content"
        options["messages"] = [{"role": "user", "content": CHAT_QUESTION}]
    else:
        path, endpoint, content = "/v1/completions", "completions", "text"
        options["prompt"] = PROMPT
    arguments = ", ".join(f"{name}={value!r}" for name, value in options.items())
    quoted = shlex.quote(str(setup.token_file))
    return _STEPS.format(
        title="Chat" if chat else "Generate",
        gen_url=services.gen_url,
        detect_url=services.detect_url,
        pages="\n".join(f"  {page}" for page in _pages(services)),
        path=path,
        body=shlex.quote(json.dumps({**options, "stream": True})),
        token_file=str(setup.token_file),
        quoted_file=quoted,
        program=_program(),
        # A model that chats ends a plain text where it likes, often too early to find anything in it.
        question=f"--chat {shlex.quote(CHAT_QUESTION)}" if chat else shlex.quote(PROMPT),
        gen_option="" if services.gen_url == GEN_URL else f" --url {services.gen_url}",
        detect_option="" if services.detect_url == DETECT_URL else f" --url {services.detect_url}",
        token_option="" if setup.token_file == TOKEN_FILE else f' --token "$(cat {quoted})"',
        endpoint=endpoint,
        arguments=arguments,
        content=content,
    )


def _pages(services: LocalServices) -> list[str]:
    """What features serve to people, and what each is for."""
    where = {"gen_url": services.gen_url, "detect_url": services.detect_url}
    templates = [template for module in modules_of("pages") for template in module.pages()]
    return [template.format(token_file=services.setup.token_file, **where) for template in templates]


def _program() -> str:
    """The shortest way to type the command that runs here."""
    script = Path(sys.executable).with_name("ttmark")
    found = shutil.which("ttmark")
    if found and Path(found).absolute() == script:
        return "ttmark"
    if not script.is_file():
        return f"{shlex.quote(sys.executable)} -m ttmark.services"
    here = Path.cwd()
    return shlex.quote(str(script.relative_to(here) if script.is_relative_to(here) else script))
