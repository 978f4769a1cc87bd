"""What vLLM is given to read while it writes: whole readings, as their rows are earned."""

from dataclasses import dataclass, field

from ttmark.gen_service.features.vllm.reading_gate import ReadingGate

SHARE = 0.2


@dataclass(eq=False)
class Text:
    length: int
    tenant: str = "acme"
    tokens: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.tokens = [1] * self.length


def flooded(count: int = 50, length: int = 200) -> ReadingGate[Text]:
    gate: ReadingGate[Text] = ReadingGate(SHARE)
    for _ in range(count):
        gate.add(Text(length))
    return gate


def test_while_something_is_written_readings_are_let_through_as_their_rows_are_earned() -> None:
    gate, read, written = flooded(), 0, 0
    for _ in range(1_000):
        for text in gate.due(writing=True):
            read += text.length
            gate.remove(text)
        assert read <= SHARE * written
        gate.wrote(8)
        written += 8
    assert read > SHARE * written - 400


def test_an_idle_engine_has_few_readings_in_hand_and_a_writer_who_comes_gets_no_more_before_him() -> None:
    gate = flooded()
    through = list(gate.due(writing=False))
    assert sum(text.length for text in through) == 2_000
    assert list(gate.due(writing=False)) == []
    gate.remove(through[0])
    assert list(gate.due(writing=True)) == []
    for text in through[1:]:
        gate.remove(text)
    for _ in range(4):
        gate.wrote(200)
        assert list(gate.due(writing=True)) == []
    gate.wrote(200)
    assert len(list(gate.due(writing=True))) == 1


def test_a_text_longer_than_what_may_be_in_hand_is_read_alone() -> None:
    gate: ReadingGate[Text] = ReadingGate(SHARE)
    long, short = Text(5_000), Text(10)
    gate.add(long)
    gate.add(short)
    assert list(gate.due(writing=False)) == [long]
    gate.remove(long)
    assert list(gate.due(writing=False)) == [short]


def test_tenants_take_turns_and_what_is_given_up_is_not_let_through() -> None:
    gate = flooded()
    given_up, modest = Text(100, "modest"), Text(100, "modest")
    gate.add(given_up)
    gate.add(modest)
    gate.remove(given_up)
    assert modest in list(gate.due(writing=False))
