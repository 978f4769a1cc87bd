"""What a template of a model folder may cost."""

import time

import pytest

from ttmark.gen_service.api.conversation.chat_template import ChatTemplate
from ttmark.shared.http.service_errors import BadRequest, ContextLengthExceeded
from ttmark.shared.schemas.generation.chat import ChatMessage

MESSAGES = [ChatMessage(role="user", content="x" * 1000)]
THOUSAND = "range(1000)"
BOMBS = [
    "{{ 'x' * 300000000 }}",
    "{{ [1] * 300000000 }}",
    "{{ 300000000 * 'x' }}",
    "{% for i in range(30000) %}{{ 'x' * 10000 }}{% endfor %}",
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}",
    f"{{% for i in {THOUSAND} %}}{{% for j in messages[0].content %}}"
    "{% for k in messages[0].content %}{% set a = 1 %}{% endfor %}{% endfor %}{% endfor %}",
    "{% set n = namespace(s='x') %}{% for i in range(40) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
    "{% set n = namespace(s='x') %}{% for i in range(40) %}{% set n.s = n.s + n.s %}{% endfor %}",
    "{% set n = namespace(s=[1]) %}{% for i in range(40) %}{% set n.s = n.s + n.s %}{% endfor %}",
    "{% set n = namespace(s='x') %}{% for i in range(40) %}{% set n.s = [n.s, n.s]|join %}{% endfor %}",
    "{% set n = namespace(s='x') %}{% for i in range(40) %}{% set n.s = ''.join([n.s, n.s]) %}{% endfor %}",
    "{% set n = namespace(s='x') %}{% for i in range(99) %}{% set n.s = n.s.replace('x','xx') %}{% endfor %}",
    "{% set n = namespace(s='x') %}{% for i in range(99) %}{% set n.s = n.s|replace('x','xx') %}{% endfor %}",
    "{% set n = namespace(s='x') %}{% for i in range(99) %}{% set n.s %}{{ n.s }}{{ n.s }}{% endset %}"
    "{% endfor %}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "{{ 'x'.center(300000000) }}",
    "{{ 'x'.ljust(300000000) }}",
    "{{ '{:300000000}'.format(1) }}",
    "{{ '{:{w}}'.format(1, w=300000000) }}",
    "{{ '%300000000d' % 1 }}",
    "{{ '%*d' % (300000000, 1) }}",
    "{{ 'x\nx'|indent(300000000) }}",
    "{{ lipsum(n=100000) }}",
    "{{ 9 ** 9 ** 9 ** 9 }}",
    "{{ 'x'.translate({120: 'y' * 9999}) }}",
    "{{ [[]]|tojson(indent=300000000) }}",
]


@pytest.mark.long
@pytest.mark.parametrize("source", BOMBS)
def test_a_template_that_does_too_much_is_refused_in_little_time(source: str) -> None:
    template = ChatTemplate(source)
    started = time.process_time()
    with pytest.raises(BadRequest):
        template.render(MESSAGES)
    assert time.process_time() - started < 20


@pytest.mark.long
def test_a_template_that_is_a_bomb_when_it_is_read_does_not_go_off() -> None:
    started = time.process_time()
    for source in BOMBS:
        ChatTemplate(source)
    assert time.process_time() - started < 20


def test_a_filter_that_only_bombs_need_is_unknown() -> None:
    with pytest.raises(ValueError, match="center"):
        ChatTemplate("{{ 'x'|center(300000000) }}")


def test_a_prompt_longer_than_the_context_can_hold_is_refused_while_it_is_written() -> None:
    template = ChatTemplate("{% for m in messages %}{{ m.content }}{% endfor %}")
    assert len(template.render(MESSAGES * 10, most=10_000)) == 10_000
    with pytest.raises(ContextLengthExceeded, match="9999 characters") as refusal:
        template.render(MESSAGES * 10, "input", most=9_999)
    assert refusal.value.param == "input"


def test_long_conversations_are_within_the_budget() -> None:
    source = (
        "{%- for m in messages %}{%- if loop.first or loop.previtem.role != m.role %}"
        "{{- '<|' + m.role + '|>' ~ (m.content | trim | replace('a', 'b')) + '\n' }}{%- endif %}{%- endfor %}"
    )
    messages = [
        ChatMessage(role=role, content="word " * 100) for _ in range(1000) for role in ("user", "assistant")
    ]
    text = ChatTemplate(source).render(messages, most=1_100_000)
    assert text.count("<|user|>") == 1000


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("{{ messages | map(attribute='role') | join(',') }}", "user,user"),
        ("{{ messages | selectattr('role', 'equalto', 'user') | list | length }}", "2"),
        ("{{ (messages | first).role ~ 1 ~ (2 ~ 'b') }}", "user12b"),
        (
            "{% for m in messages if m.role == 'user' %}{{ loop.index }}/{{ loop.length }} {% endfor %}",
            "1/2 2/2 ",
        ),
        ("{% for k, v in {'a': 1}.items() %}{{ k }}={{ v }}{% endfor %}", "a=1"),
        ("{{ {'b': [1, 'é']} | tojson }}", '{"b": [1, "é"]}'),
        ("{{ {'b': 1} | tojson(indent=1) }}", '{\n "b": 1\n}'),
        ("{{ 'a\nb' | indent(2) }}", "a\n  b"),
        ("{{ 'a' if messages is iterable and 'a' not in 'b' else 'c' }}{{ '%s-%d' % ('x', 3) }}", "ax-3"),
        ("{{ messages[::-1][0].role[1:] }}{{ 'a|b'.split('|')[-1].strip() }}{{ 'x' * 3 }}", "serbxxx"),
        ("{% macro turn(m) %}<{{ m.role }}>{% endmacro %}{{ turn(messages[0]) }}", "<user>"),
        (
            "{% set n = namespace(n=0) %}{% for m in messages %}{% set n.n = n.n + 1 %}{% endfor %}{{ n.n }}",
            "2",
        ),
        ("{% for i in range(3) %}{{ i }}{% else %}none{% endfor %}", "012"),
    ],
)
def test_what_chat_templates_do_gives_what_jinja_gives(source: str, written: str) -> None:
    messages = [ChatMessage(role="user", content=text) for text in "ab"]
    assert ChatTemplate(source).render(messages) == written
