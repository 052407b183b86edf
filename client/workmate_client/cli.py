"""`workmate`: what a worker does at the command line, with the same functions as the screens.

Status 0: done. 1: refused, with a code and a sentence on standard error, as JSON with `--json`.
2: wrong usage. Expected faults never show a traceback.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from workmate_client.commands.answer import (
    REFUSED,
    Answer,
    encoded,
    refusal_lines,
    refusal_value,
)
from workmate_client.errors import DeviceError, check_text

if TYPE_CHECKING:
    from workmate_client.bootstrap import Machine

INTERRUPTED = 130
"""The status of a program that was interrupted from the keyboard."""


def main(
    arguments: Sequence[str] | None = None,
    environment: Mapping[str, str] | None = None,
    machine: "Machine | None" = None,
) -> int:
    """Run one command line and return its status; the entry point of `workmate`.

    By default with the arguments and the environment of this process, on this machine.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            # A terminal that cannot show a letter shows its number, and nobody loses the rest.
            reconfigure(errors="backslashreplace")
    if [word for word in given if word != "--json"][:1] == ["demo"]:
        from workmate_client.commands.demo import demo

        given.remove("demo")
        return demo(given)
    parsed = _parser().parse_args(given)
    try:
        _check_texts(parsed)
        answer = _answer(parsed, os.environ if environment is None else environment, machine)
    except DeviceError as error:
        _refuse(error, as_json=parsed.json)
        return REFUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    return _say(answer, as_json=parsed.json)


def _check_texts(parsed: argparse.Namespace) -> None:
    """Refuse arguments that are not text; the names of files may be any bytes, and are no text."""
    for name, value in vars(parsed).items():
        for word in value if isinstance(value, list) else [value]:
            if isinstance(word, str):
                check_text(f"what was given for {name.replace('_', '-')}", word)


def _answer(
    parsed: argparse.Namespace, environment: Mapping[str, str], machine: "Machine | None"
) -> Answer:
    from workmate_client.bootstrap import this_machine
    from workmate_client.commands.program import Program
    from workmate_client.config import ProfilePaths, profile_folder

    paths = ProfilePaths(profile_folder(environment))
    program = Program(machine or this_machine(), paths, environment)
    try:
        answer: Answer = parsed.run(program, parsed)
    finally:
        program.close()
    return answer


def _parser() -> argparse.ArgumentParser:
    from workmate_client.commands.contact import add_contact
    from workmate_client.commands.outbox import add_outbox, show_status
    from workmate_client.commands.proofs import add_proofs
    from workmate_client.commands.work import add_work

    parser = argparse.ArgumentParser(
        prog="workmate", description="Do field work and prove it, with or without a network."
    )
    parser.add_argument("--json", action="store_true", default=False, help="answer in JSON")
    parser.set_defaults(run=show_status)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", default=argparse.SUPPRESS)
    subcommands = parser.add_subparsers(dest="subcommand", metavar="COMMAND")
    for add in (add_contact, add_work, add_proofs, add_outbox):
        add(subcommands, common)
    subcommands.add_parser("demo", help="show the whole journey on this laptop")
    return parser


def _say(answer: Answer, *, as_json: bool) -> int:
    try:
        if as_json:
            print(encoded(answer.value))
        else:
            for line in answer.lines:
                print(line)
        sys.stdout.flush()
    except BrokenPipeError:
        # Who reads has seen enough; Python must not find that out once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return answer.status


def _refuse(error: DeviceError, *, as_json: bool) -> None:
    lines = [encoded(refusal_value(error))] if as_json else refusal_lines(error)
    for line in lines:
        print(line, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
