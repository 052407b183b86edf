"""What the sync engine remembers between two runs of one process; all of it can be lost.

Everything that matters is in the journal. This only spares requests, hashing, and hammering.
"""

from workmate_client.journal.rows import QueuedCommand
from workmate_client.sync.backoff import LINK_UP, Link
from workmate_client.sync.evidence import EvidenceView
from workmate_client.sync.exchange import Exchange, size_as_sent
from workmate_client.sync.failures import TransportError
from workmate_client.sync.parts import SyncParts
from workmate_client.sync.recording import Recorder
from workmate_client.sync.session import DeviceSession
from workmate_client.sync.upload import Uploader, UploadProgress
from workmate_client.sync.watchdog import Watchdog


class Memory:
    """The link, the session, the batch size, and the parts that keep something of their own."""

    def __init__(self, parts: SyncParts, progress: UploadProgress) -> None:
        self._parts = parts
        self._sizes: dict[str, int] = {}
        self.link: Link = LINK_UP
        self.batch_limit = parts.settings.sync_commands_limit
        self.stopping = False
        self.session = DeviceSession(parts)
        self.recorder = Recorder(parts)
        self.exchange = Exchange(parts, self.recorder)
        self.uploader = Uploader(parts, progress)
        self.view = EvidenceView(parts.journal, parts.replica)
        self.watchdog = Watchdog(parts.settings.watchdog_seconds)

    def link_failed(self, error: TransportError) -> None:
        """Note that the link or the whole server failed: nothing is tried before its time."""
        parts = self._parts
        self.link = self.link.failed(error, parts.now_seconds(), parts.fraction(), parts.settings)

    def size(self, command: QueuedCommand) -> int:
        """Return a command's size as sent, in bytes, computed once."""
        known = self._sizes.get(command.command_id)
        if known is None:
            known = self._sizes[command.command_id] = size_as_sent(command)
        return known
