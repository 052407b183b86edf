"""SIGNATURES (bodies follow within the hour): bind this device to a worker and a server, once."""

from typing import Protocol
from workmate_shared.wire.messages import EnrolmentOffer, Outcome, SignedCommand


class EnrolmentTransport(Protocol):
    """How an enrolment reaches the server; `sync/transport.py` implements it over HTTP.

    Both raise a DeviceError of the transport when no proven answer came (same bytes again later), and
    one with the catalogue's code when the server refused (a problem document).
    """

    async def offer(self, code_hash: str) -> EnrolmentOffer:
        """Ask whom the code enrols and by which keys the server signs."""
        ...

    async def enrol(self, signed: SignedCommand) -> Outcome:
        """Send the signed `enrol` command; the answer is not verified here."""
        ...
