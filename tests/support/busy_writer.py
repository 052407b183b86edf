"""A process that writes into a shared profile as fast as it can: `python -m support.busy_writer`.

Arguments: profile folder, the name of the writer, how many acts. Prints what it was told is saved.
"""

import json
import sys
from pathlib import Path

from support.contexts import story_to
from support.laptop import TASK, Laptop, machine_for_tests
from workmate_client.service import submission


def main(folder: Path, name: str, count: int) -> None:
    it = Laptop(folder, story_to("assigned"), machine_for_tests(real_waiting=True))
    saved = []
    for number in range(count):
        done = submission.note(it.device, TASK, f"{name} {number}")
        assert done.command is not None
        saved.append([done.command.device_seq, done.command.command_id])
        it.device.journal.edit_draft(TASK, "shared", lambda old: (old or b"") + b".")
    print(json.dumps(saved))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
