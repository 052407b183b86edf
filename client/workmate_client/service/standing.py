"""Whether the office still trusts this device and its worker, as far as it was heard here.

The server says so with every pull that it refuses, and takes it back with the next one that it
answers. What was gathered was offered to it all the same, and is handed over.
"""

from msgspec import Struct

from workmate_client.journal.rows import Profile
from workmate_client.service.device import Device, ServiceError

NO_LONGER_ABLE: dict[str, str] = {
    "device_revoked": "the office no longer trusts this laptop",
    "actor_deactivated": "the office has deactivated your account",
}
"""What the server refuses for good, and the sentence for it."""


class Standing(Struct, frozen=True, kw_only=True):
    """That nothing of this device counts any more: the code, why, what is safe, what to do."""

    code: str
    sentence: str
    safe: str
    todo: str


def standing_of(profile: Profile) -> Standing | None:
    """Return what stood against this device or its worker at the last pull, or None."""
    code = profile.pull_refused
    if code is None or code not in NO_LONGER_ABLE:
        return None
    return Standing(
        code=code,
        sentence=NO_LONGER_ABLE[code],
        safe="Everything is still here; what was gathered and sent is with the office.",
        todo="Ask the office. To work again, enrol with a new code in a new profile folder: "
        "name it in WORKMATE_HOME.",
    )


def check_standing(device: Device) -> None:
    """Raise ServiceError with the standing's code where nothing of this device would count."""
    found = standing_of(device.profile())
    if found is not None:
        raise ServiceError(found.code, found.sentence)
