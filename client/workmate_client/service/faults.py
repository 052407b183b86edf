"""The device's own codes: what happened, whether the work is safe, what to do, in plain words.

What the server can answer is in the shared catalogue; this is the rest, for the same readers.
"""

from msgspec import Struct

from workmate_shared.kernel.catalogue import CATALOGUE

_KEPT = "Everything that was saved is still here."
_NOTHING = "Nothing was changed."


class Fault(Struct, frozen=True):
    """What one code means to a person."""

    title: str
    safe: str
    todo: str


FAULTS: dict[str, Fault] = {
    "keys_missing": Fault("This laptop is not enrolled", _NOTHING, "Run: workmate enrol"),
    "not_enrolled": Fault("This laptop is not enrolled", _NOTHING, "Run: workmate enrol"),
    "keys_exist": Fault("This profile has keys", _KEPT, "Go on with them."),
    "keys_damaged": Fault("The keyring's entry was changed", _KEPT, "Restore the keyring."),
    "keyring_locked": Fault("The keyring is locked", _KEPT, "Unlock it and try again."),
    "keyring_unavailable": Fault(
        "There is no keyring that counts",
        _KEPT,
        "Start the system's keyring, or enrol with --keys vault.",
    ),
    "wrong_passphrase": Fault("The passphrase does not fit", _KEPT, "Type it again."),
    "passphrase_needed": Fault("Nobody can be asked for the passphrase", _KEPT, "Provide it."),
    "passphrase_differs": Fault("The passphrases differ", _NOTHING, "Type the same one twice."),
    "passphrase_too_short": Fault("The passphrase is too short", _NOTHING, "Choose a longer one."),
    "vault_damaged": Fault("The vault was changed", _KEPT, "Restore keys.vault from a backup."),
    "vault_memory": Fault("Too little memory to open the vault", _KEPT, "Close other programs."),
    "profile_busy": Fault("Another process is syncing", _KEPT, "Let it finish; it sends all."),
    "store_busy": Fault("Another process is writing", _NOTHING, "Try again."),
    "store_damaged": Fault(
        "A store on this laptop is damaged",
        "The damaged file is kept; unsent acts are in the unsent log too.",
        "Start the program again: it puts the file aside and rebuilds it.",
    ),
    "store_too_new": Fault("A newer program wrote this", _KEPT, "Update this program."),
    "store_key_wrong": Fault("Sealed under another key", _KEPT, "Use the keys it was made with."),
    "sqlite_too_old": Fault("This SQLite can lose data", _KEPT, "Install the program anew."),
    "unsent_record_too_large": Fault(
        "This act is too large to be saved", _NOTHING, "Put fewer things into one proof."
    ),
    "issue_uncertain": Fault(
        "The disk failed while saving",
        "What was saved before is safe; whether this act is, is not known.",
        "Look at the job before you do it again.",
    ),
    "disk_full": Fault(
        "The disk is full", "What was saved is safe.", "Free some space and try again."
    ),
    "store_read_only": Fault("The disk is read-only", _KEPT, "Make it writable again."),
    "store_denied": Fault("No permission for a file", _KEPT, "Give this user access to it."),
    "store_failed": Fault("The disk reported a failure", _KEPT, "Check the disk."),
    "file_missing": Fault("A file is not there", _KEPT, "Start the program again."),
    "file_busy": Fault("Another process holds a file", _NOTHING, "Try again."),
    "source_missing": Fault("No such file", _NOTHING, "Check the path."),
    "source_not_a_file": Fault("Not a file", _NOTHING, "Choose a file."),
    "source_empty": Fault("The file is empty", _NOTHING, "Take the photo again."),
    "source_too_large": Fault("The file is too large", _NOTHING, "Take a smaller one."),
    "source_unreadable": Fault("The file cannot be read", _NOTHING, "Check the card or camera."),
    "source_changing": Fault("The file is still growing", _NOTHING, "Wait and try again."),
    "source_changed": Fault("The file changed meanwhile", _NOTHING, "Try again."),
    "code_length": Fault("Not a whole code", _NOTHING, "Type all of its letters and digits."),
    "code_symbol": Fault("Not a code", _NOTHING, "Type it as it was read out."),
    "jobs_not_fetched": Fault(
        "The list of jobs is not on this laptop",
        "Your own acts and files are safe, also those that were not sent yet.",
        "Run: workmate sync once",
    ),
    "time_invalid": Fault("Not a time", _NOTHING, "Write it like 2026-03-01T10:30:00+01:00."),
    "code_spent": Fault("The code was used already", _KEPT, "Ask the office for a new code."),
    "profile_retired": Fault(
        "This profile cannot be used any more",
        _KEPT,
        "Name a new profile folder in WORKMATE_HOME, and enrol there with a new code.",
    ),
    "text_not_utf8": Fault("Not readable as text", _NOTHING, "Type it in UTF-8."),
    "code_mistyped": Fault("The code was mistyped", _NOTHING, "Compare it and type it again."),
    "enrolled_elsewhere": Fault("Enrolled at another server", _KEPT, "Use another profile."),
    "server_key_unknown": Fault(
        "This is not the server of the code",
        "Nothing was sent that could be misused.",
        "Check the address, or ask for a new code.",
    ),
    "receipt_unproven": Fault("The answer proves nothing", _KEPT, "Try again with the same code."),
    "transport_failed": Fault("The server did not answer", _KEPT, "It is sent again by itself."),
    "server_insecure": Fault("The address is not secure", _NOTHING, "Use an https address."),
    "server_unreachable": Fault("The server cannot be reached", _KEPT, "It is sent later."),
    "stalled": Fault("The connection stood still", _KEPT, "It is sent again by itself."),
    "connection_cut": Fault("The connection broke", _KEPT, "It is sent again by itself."),
    "answer_unreadable": Fault(
        "Something else than our server answered",
        _KEPT,
        "Sign in to the network you are on, then try again.",
    ),
    "proof_incomplete": Fault("Something is missing", _KEPT, "Add it, or insist on submitting."),
    "nothing_gathered": Fault("Nothing has been gathered", _NOTHING, "Gather something first."),
    "arrival_needs_fix": Fault("Where are you?", _NOTHING, "Give a position or --no-fix."),
    "position_invalid": Fault("Not a position", _NOTHING, "Give degrees, for instance 28.61."),
    "command_unknown": Fault("No such act", _NOTHING, "Look it up with: workmate conflicts"),
    "not_lost": Fault("There is nothing to decide", _NOTHING, "Leave it as it is."),
    "evidence_unknown": Fault("No such file", _NOTHING, "Look it up with: workmate status"),
    "page_does_not_join": Fault("A part of the news is missing", _KEPT, "It is fetched anew."),
    "draft_unreadable": Fault(
        "The proof in the making cannot be read", _KEPT, "Update this program."
    ),
}
"""Every code that a device can meet by itself and that wants more than its own sentence."""


def fault_of(code: str) -> Fault | None:
    """Return the words for a code: the device's own, else the shared catalogue's, else None."""
    if code in FAULTS:
        return FAULTS[code]
    entry = CATALOGUE.get(code)
    return Fault(entry.title, entry.safe, entry.todo) if entry else None
