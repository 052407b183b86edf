"""A typed name as a small drawing, so that a signature is a file like every other evidence."""

from xml.sax.saxutils import escape

from workmate_client.journal.rows import EvidenceItem
from workmate_client.service.copies import keep_one_copy
from workmate_client.service.device import Device, ServiceError
from workmate_client.service.drafts import DraftSignature
from workmate_shared.tasks.policy import Signer

MEDIA_TYPE = "image/svg+xml"
NAME_LIMIT = 500
"""The longest name that a message may carry, in characters."""

_LETTER = 24
_HEIGHT = 96


def draw_name(name: str) -> bytes:
    """Return an SVG 1.1 document that shows the name as a handwritten line."""
    shown = escape("".join(letter if letter.isprintable() else "\ufffd" for letter in name))
    width = _LETTER * (len(name) + 2)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{_HEIGHT}" '
        f'viewBox="0 0 {width} {_HEIGHT}"><title>{shown}</title>'
        f'<text x="{_LETTER}" y="64" font-family="cursive" font-size="40">{shown}</text></svg>\n'
    ).encode()


def check_name(name: str) -> None:
    """Raise ServiceError `name_too_long` for a name that no message may carry."""
    if len(name) > NAME_LIMIT:
        raise ServiceError("name_too_long", f"a name has at most {NAME_LIMIT} characters")


def draw_signature(
    device: Device, task_id: str, signer: Signer, name: str
) -> tuple[DraftSignature, EvidenceItem]:
    """Draw a name and seal the drawing; it is on disk, whole, and still to be listed."""
    now = device.now()
    sealed = device.sealed.import_bytes(draw_name(name))
    kept = keep_one_copy(device, sealed)
    signature = DraftSignature(
        name=name,
        hash=sealed.hash,
        size=sealed.size_bytes,
        media_type=MEDIA_TYPE,
        signed_at=now,
    )
    item = EvidenceItem(
        task_id=task_id,
        hash=sealed.hash,
        size_bytes=sealed.size_bytes,
        sealed_name=kept,
        kind="signature",
        media_type=MEDIA_TYPE,
        slot=signer,
        captured_at=now,
        captured_from="device",
        added_at=now,
    )
    return signature, item
