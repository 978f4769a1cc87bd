"""Twenty-five requests for JSON as applications send them: what is asked for, and its schema."""

from typing import Any

Schema = dict[str, Any]


def obj(**properties: Schema) -> Schema:
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def lst(items: Schema, most: int = 4, least: int = 2) -> Schema:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


def s(most: int) -> Schema:
    return {"type": "string", "maxLength": most}


def enum(*values: str) -> Schema:
    return {"enum": list(values)}


N: Schema = {"type": "integer", "minimum": 0, "maximum": 999}
B: Schema = {"type": "boolean"}
ORDINARY: tuple[tuple[str, Schema], ...] = (
    (
        "Write a support ticket about a printer that stops in the middle of a page.",
        obj(title=s(80), description=s(400), priority=enum("low", "medium", "high"), steps=lst(s(120))),
    ),
    (
        "Write a support ticket about an app that logs people out.",
        obj(subject=s(80), body=s(500), tags=lst(s(20)), urgent=B),
    ),
    (
        "Give the address of a bakery in a small town.",
        obj(name=s(60), street=s(60), city=s(40), postcode=s(10), country=s(30), directions=s(300)),
    ),
    (
        "Give three addresses of museums, with a remark about each.",
        obj(addresses=lst(obj(name=s(60), street=s(60), city=s(40), remark=s(200)), 3, 3)),
    ),
    (
        "Call the tool send_email to tell Anna that the meeting has moved to Friday.",
        obj(tool=enum("send_email", "create_event"), arguments=obj(to=s(40), subject=s(80), body=s(500))),
    ),
    (
        "Call the tool create_event for a team lunch.",
        obj(
            tool=enum("send_email", "create_event"),
            arguments=obj(title=s(60), place=s(60), notes=s(300), guests=lst(s(30))),
        ),
    ),
    (
        "Call a search tool to find out how bees make honey; say why.",
        obj(reasoning=s(400), tool=enum("search", "calculator"), query=s(100)),
    ),
    (
        "A recipe for a vegetable soup.",
        obj(name=s(60), ingredients=lst(obj(item=s(40), amount=s(30)), 6, 3), steps=lst(s(160), 5, 3)),
    ),
    (
        "A shopping list for a birthday party, in groups.",
        obj(groups=lst(obj(name=s(30), items=lst(s(40), 5, 2)), 3, 2)),
    ),
    (
        "A quiz question about the solar system with four options and an explanation.",
        obj(question=s(200), options=lst(s(60), 4, 4), correct=N, explanation=s(300)),
    ),
    (
        "A lesson plan about rivers.",
        obj(
            topic=s(60),
            goals=lst(s(120), 3),
            activities=lst(obj(name=s(50), minutes=N, description=s(200)), 3, 2),
        ),
    ),
    ("Summarize the plot of a story about a lost dog.", obj(title=s(60), summary=s(600))),
    (
        "Review a restaurant.",
        obj(
            sentiment=enum("positive", "negative", "neutral"),
            stars={"type": "integer", "minimum": 1, "maximum": 5},
            review=s(500),
        ),
    ),
    (
        "Describe a fictional character for a novel.",
        obj(name=s(40), age=N, occupation=s(50), traits=lst(s(30)), backstory=s(500)),
    ),
    (
        "A product description of a desk lamp.",
        obj(name=s(60), price={"type": "number"}, features=lst(s(100)), description=s(400), available=B),
    ),
    (
        "A travel plan for a weekend in Rome.",
        obj(days=lst(obj(day=s(20), morning=s(150), afternoon=s(150), evening=s(150)), 2, 2)),
    ),
    (
        "Explain photosynthesis in short.",
        obj(answer=s(600), confidence={"type": "number", "minimum": 0, "maximum": 1}),
    ),
    (
        "Extract the facts: Maria, 34, a nurse from Porto, has two cats and likes to hike on weekends.",
        obj(name=s(40), age=N, job=s(40), city=s(40), pets=lst(s(40)), about=s(300)),
    ),
    (
        "Propose three names for a bakery with a reason for each.",
        obj(names=lst(obj(name=s(40), reason=s(200)), 3, 3)),
    ),
    (
        "Write the minutes of a meeting about a new website.",
        obj(title=s(60), decisions=lst(s(150)), tasks=lst(obj(who=s(30), what=s(150)), 3)),
    ),
    ("Give advice to somebody who wants to sleep better.", obj(advice=lst(obj(tip=s(60), why=s(200)), 4, 3))),
    (
        "Write a comment for a code review of a function without tests.",
        obj(file=s(40), line=N, severity=enum("info", "warning", "error"), comment=s(400), suggestion=s(300)),
    ),
    (
        "Translate 'good morning' and explain how it is used.",
        obj(translation=s(40), language=s(20), usage=s(400)),
    ),
    (
        "Describe the weather tomorrow in three cities.",
        obj(forecast=lst(obj(city=s(30), temperature=N, text=s(160)), 3, 3)),
    ),
    (
        "Write a short job advertisement for a gardener.",
        obj(
            position=s(50), company=s(50), duties=lst(s(120), 4, 3), requirements=lst(s(100), 3), text=s(400)
        ),
    ),
)
