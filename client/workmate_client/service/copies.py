"""The sealed copies of evidence: whether the bytes are there, and one whole copy kept of each file.

A file is judged by reading it to its end. Adding a file again heals whatever lost its bytes: the
rows of that file name a copy that was read whole, and wait for nothing any more.
"""

import contextlib

from workmate_client.journal.sealed import SealedEvidence, SealedFileError
from workmate_client.ports import StorageError
from workmate_client.service.device import Device
from workmate_client.service.drafts import ProofDraft
from workmate_shared.tasks.proof import Finding


class CopyCheck:
    """Reads sealed copies, each of them at most once."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._faults: dict[tuple[str, str], str | None] = {}

    def fault(self, name: str, content_hash: str) -> str | None:
        """Return the code of what is wrong with a sealed copy of a file, or None; blocking."""
        key = (name, content_hash)
        if key not in self._faults:
            try:
                self._device.sealed.verify_file(name, content_hash)
            except (SealedFileError, StorageError) as error:
                self._faults[key] = error.code
            else:
                self._faults[key] = None
        return self._faults[key]

    def findings(self, task_id: str, draft: ProofDraft) -> tuple[Finding, ...]:
        """Return a finding for each file of a draft that could not be brought to the server."""
        named = [(photo.hash, photo.slot) for photo in draft.photos]
        named += [
            (signature.hash, f"signature of the {signer}")
            for signer, signature in draft.signatures.items()
            if signature.hash is not None
        ]
        return tuple(
            Finding("file_damaged", about)
            for content_hash, about in named
            if not self._is_safe(task_id, content_hash)
        )

    def _is_safe(self, task_id: str, content_hash: str) -> bool:
        item = self._device.journal.evidence_item(task_id, content_hash)
        if item is None or item.verified_at is not None:
            return item is not None
        return item.quarantined is None and self.fault(item.sealed_name, content_hash) is None


def keep_one_copy(device: Device, fresh: SealedEvidence) -> str:
    """Return the name of the copy to keep of a file that was just sealed.

    An earlier copy stays if it is whole. Otherwise the fresh one takes its place, in every row of
    the file, and the rows are tried again. Raises StoreError, StorageError.
    """
    known = device.journal.evidence_by_hash(fresh.hash)
    check = CopyCheck(device)
    names = dict.fromkeys(item.sealed_name for item in known)
    others = [name for name in names if name != fresh.name]
    faults = {name: check.fault(name, fresh.hash) for name in others}
    whole = [name for name, fault in faults.items() if fault is None]
    kept = whole[0] if whole else fresh.name
    broken = {name: fault for name, fault in faults.items() if fault is not None}
    if known:
        device.journal.renew_evidence(fresh.hash, tuple(broken), kept)
    # A copy that the disk refused to read may be readable again; only a spoilt one goes.
    spoilt = [name for name, fault in broken.items() if fault.startswith("sealed_")]
    for name in (*spoilt, *([fresh.name] if kept != fresh.name else [])):
        # What is left behind is found again, and told, at the next start.
        with contextlib.suppress(StorageError):
            device.sealed.remove(name)
    return kept
