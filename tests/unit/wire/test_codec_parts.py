"""Parts of a message that was judged as a whole: bounds and types still hold, nothing else is asked."""

import msgspec
import pytest

from workmate_shared.wire.codec import MalformedError, decode, decode_part


class Note(msgspec.Struct):
    text: str
    count: int = 0


def test_what_is_decoded_is_what_the_strict_reader_decodes() -> None:
    data = b'{"text":"a","count":2}'
    assert decode_part(data, Note, max_bytes=100) == decode(data, Note, max_bytes=100)


def test_what_parsers_differ_on_is_not_judged_a_second_time() -> None:
    data = b'{"text":"a","text":"b"}'
    assert decode_part(data, Note, max_bytes=100).text == "b"
    with pytest.raises(MalformedError):
        decode(data, Note, max_bytes=100)


@pytest.mark.parametrize(
    ("data", "path"), [(b'{"text":1}', "$.text"), (b'{"text":"a"', "$"), (b"\xff", "$")]
)
def test_what_is_no_message_of_the_kind_is_refused_with_its_path(data: bytes, path: str) -> None:
    with pytest.raises(MalformedError) as caught:
        decode_part(data, Note, max_bytes=100)
    assert (caught.value.code, caught.value.path) == ("invalid_command", path)


def test_the_bounds_hold_to_the_byte_and_to_the_level() -> None:
    data = b'{"text":"a","more":[[]]}'
    assert decode_part(data, Note, max_bytes=len(data), max_depth=3).text == "a"
    with pytest.raises(MalformedError) as caught:
        decode_part(data, Note, max_bytes=len(data) - 1)
    assert caught.value.code == "too_large"
    with pytest.raises(MalformedError):
        decode_part(data, Note, max_bytes=len(data), max_depth=2)
