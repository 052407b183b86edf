"""Builders for commands, policies and manifests, every value fixed.

A builder gives one valid example; what a test is about it passes by name.
"""

from typing import Any

from workmate_shared.kernel.command import Actor, Command, DeviceReading, Override
from workmate_shared.kernel.ids import task_id_for
from workmate_shared.kernel.table import Role
from workmate_shared.principals.commands import DeviceKey
from workmate_shared.tasks.commands import Eta, Window
from workmate_shared.tasks.manifest import (
    AnswerItem,
    ArticleVersion,
    ConsentItem,
    Manifest,
    PhotoItem,
    SignatureItem,
    content_hash,
    encode_manifest,
)
from workmate_shared.tasks.policy import (
    ConfirmItem,
    ConsentText,
    NumberItem,
    PhotoSlot,
    ProofPolicy,
    policy_version,
)
from workmate_shared.wire.binary import to_base64
from workmate_shared.wire.commitment import Disclosure, make_disclosure
from workmate_shared.wire.registry import COMMAND_TYPES, kind_of_command

TENANT = "01930000-0000-7000-8000-000000000001"
LINEAGE = "01930000-0000-7000-8000-000000000002"
DEVICE = "01930000-0000-7000-8000-000000000004"
SOURCE = "nyc311"
EXTERNAL_ID = "42254749"
TASK = task_id_for(TENANT, SOURCE, EXTERNAL_ID)

ASSIGNEE = "usr_ann"
FORMER = "usr_ben"
STRANGER = "usr_cleo"
DISPATCHER = "usr_dora"
SUPERVISOR = "usr_sven"
OTHER_SUPERVISOR = "usr_sigi"
ADMIN = "usr_adam"
SYSTEM = "system"

OCCURRED_AT = "2026-03-01T09:58:00+01:00"
NOW = "2026-03-01T09:00:00.000Z"

PHOTO = "aa" * 32
DRAWING = "bb" * 32
OTHER_FILE = "cc" * 32
MANIFEST_ID = "manifest-1"

_ACTS_AS = {
    Role.INTEGRATION: "svc_nyc311",
    Role.DISPATCHER: DISPATCHER,
    Role.WORKER: ASSIGNEE,
    Role.SUPERVISOR: SUPERVISOR,
    Role.ADMIN: ADMIN,
    Role.SYSTEM: SYSTEM,
}
_USUAL_ROLE = {
    "create_task": Role.INTEGRATION,
    "assign": Role.DISPATCHER,
    "approve_proof": Role.SUPERVISOR,
    "reject_proof": Role.SUPERVISOR,
    "dismiss_handover": Role.SUPERVISOR,
    "release": Role.DISPATCHER,
    "amend": Role.DISPATCHER,
    "cancel": Role.DISPATCHER,
    "create_principal": Role.ADMIN,
    "change_principal": Role.ADMIN,
    "deactivate_principal": Role.ADMIN,
    "add_credential": Role.ADMIN,
    "revoke_credential": Role.ADMIN,
}

PERSONAL: dict[str, dict[str, Any]] = {
    "create_task": {"client": "Frau Müller", "site_name": "Depot 7", "address": "Lange Gasse 1"},
    "assign": {"selection_reason": "nearest with the skill"},
    "decline": {"reason": "nobody opened"},
    "release": {"reason": "needed elsewhere"},
    "cancel": {"reason": "the client withdrew"},
    "reject_proof": {"reason": "the photo is blurred"},
    "dismiss_handover": {"reason": "done by somebody else"},
    "create_principal": {"display_name": "Ann Onym"},
}
"""The personal value that the example of each command commits to; others have none."""

OVERRIDE_REASON = {"override_reason": "the laptop is broken"}
SITE: dict[str, Any] = {"lat_e7": 405863974, "lon_e7": -739325913, "mappls_pin": "3F45CB"}
FIX: dict[str, Any] = {"lat_e7": 405863974, "lon_e7": -739325913, "accuracy_m": 8, "source": "gps"}
ANSWERS: dict[str, Any] = {
    "answers": {"isolated": True, "volts": "231"},
    "names": {"sig-worker": "Ann Onym", "consent": "Frau Müller"},
}
FIXES: dict[str, Any] = {"after-1": FIX}


def make_salt(number: int) -> bytes:
    """Return 32 bytes that are always the same for a number below 256."""
    return bytes([number]) * 32


def disclose(
    value: object, salt: int = 1, retention_class: str = "contract_7y"
) -> tuple[str, Disclosure]:
    """Return the commitment to a value under a fixed salt, and its disclosure."""
    return make_disclosure(value, make_salt(salt), retention_class)


DISCLOSURES: dict[str, Disclosure] = dict(
    disclose(value)
    for value in (
        *PERSONAL.values(),
        *({**value, **OVERRIDE_REASON} for value in PERSONAL.values()),
        OVERRIDE_REASON,
        SITE,
        FIX,
        ANSWERS,
        FIXES,
    )
)
"""What opens every commitment that a builder makes by itself."""


def make_actor(
    role: Role | str = Role.WORKER, principal_id: str | None = None, device_id: str | None = None
) -> Actor:
    """Return an actor; unless told otherwise each role is always the same person."""
    acting = Role(role)
    return Actor(
        principal_id or _ACTS_AS.get(acting, f"usr_{acting.value}"), acting, device_id=device_id
    )


def make_policy(**changes: Any) -> ProofPolicy:
    """Return a policy that asks for one thing of most kinds."""
    fields: dict[str, Any] = {
        "checklist": (
            ConfirmItem(item_id="isolated", prompt="Supply isolated", required=True, passes=True),
            NumberItem(
                item_id="volts", prompt="Reading", unit="V", min="0", max="250", required=True
            ),
        ),
        "photos": (PhotoSlot(slot="after", prompt="Finished work", max=4, max_age_seconds=86400),),
        "signature": ("worker",),
        "consent": ConsentText("2026-01", "I agree."),
        "geofence_m": 200,
    }
    return ProofPolicy(**(fields | changes))


def make_manifest(**changes: Any) -> Manifest:
    """Return a manifest that the example policy finds nothing wrong with."""
    fields: dict[str, Any] = {
        "manifest_id": MANIFEST_ID,
        "task_id": TASK,
        "task_version": 5,
        "capture_time": "2026-03-01T09:50:00+01:00",
        "policy_version": policy_version(make_policy()),
        "articles": (ArticleVersion("isolate", "v2.1.0"),),
        "items": (
            make_photo("after-1"),
            AnswerItem(item_id="isolated"),
            AnswerItem(item_id="volts"),
            make_signature("sig-worker"),
            ConsentItem(item_id="consent", text_version="2026-01"),
        ),
        "personal": disclose(ANSWERS)[0],
        "position": disclose(FIXES)[0],
    }
    return Manifest(**(fields | changes))


def make_photo(item_id: str, **changes: Any) -> PhotoItem:
    """Return a photo in the slot `after`."""
    fields: dict[str, Any] = {
        "item_id": item_id,
        "slot": "after",
        "hash": PHOTO,
        "size": 161713,
        "media_type": "image/jpeg",
        "captured_at": "2026-03-01T09:45:00+01:00",
    }
    return PhotoItem(**(fields | changes))


def make_signature(item_id: str, **changes: Any) -> SignatureItem:
    """Return the worker's signature as a drawing."""
    fields: dict[str, Any] = {
        "item_id": item_id,
        "signer": "worker",
        "hash": DRAWING,
        "size": 2210,
        "media_type": "image/svg+xml",
    }
    return SignatureItem(**(fields | changes))


def manifest_fields(manifest: Manifest) -> dict[str, Any]:
    """Return the two fields by which a command carries a manifest."""
    data = encode_manifest(manifest)
    return {"manifest": to_base64(data), "content_hash": content_hash(data)}


def make_reading(seq: int = 1, **changes: Any) -> DeviceReading:
    """Return what a device knew of order and time."""
    fields: dict[str, Any] = {
        "device_seq": seq,
        "monotonic_ms": 1000 * seq,
        "boot_id": "boot-1",
        "last_server_time": "2026-03-01T08:00:00.000Z",
    }
    return DeviceReading(**(fields | changes))


def _example_fields(kind: str) -> dict[str, Any]:
    match kind:
        case "create_task":
            return {
                "source": SOURCE,
                "external_id": EXTERNAL_ID,
                "priority": 2,
                "due_at": "2026-03-02T12:00:00+01:00",
                "window": Window("2026-03-01T08:00:00+01:00", "2026-03-01T12:00:00+01:00"),
                "required_skills": ("electrical",),
                "proof_policy": make_policy(),
                "position": disclose(SITE)[0],
            }
        case "assign":
            return {"worker_id": ASSIGNEE}
        case "decline":
            return {"reason_code": "nobody_home"}
        case "arrive":
            return {"position": disclose(FIX)[0], "evidence": (OTHER_FILE,)}
        case "submit_proof" | "hand_over":
            return manifest_fields(make_manifest())
        case "approve_proof" | "reject_proof" | "dismiss_handover":
            return {"manifest_id": MANIFEST_ID}
        case "amend":
            return {"priority": 1}
        case "observe":
            return {"readings": (Eta(at=OCCURRED_AT, arrive_at="2026-03-01T10:30:00+01:00"),)}
        case "store_evidence":
            return {"hashes": (PHOTO, DRAWING)}
        case _:
            return _example_fields_of_a_principal(kind)


def _example_fields_of_a_principal(kind: str) -> dict[str, Any]:
    match kind:
        case "create_principal":
            return {"kind": "person", "roles": (Role.WORKER,), "skills": ("electrical",)}
        case "change_principal":
            return {"skills": ("electrical", "heights")}
        case "add_credential":
            return {"credential": DeviceKey(credential_id=DEVICE, public_key="0a" * 32)}
        case "revoke_credential":
            return {"credential_id": DEVICE}
        case "enrol":
            return {"public_key": "0b" * 32, "server_key_id": "0c" * 32}
        case _:
            return {}


def make_command(kind: str, /, **fields: Any) -> Command:
    """Return a valid example of a command by its wire name, changed by the fields given.

    With an `override` (a principal's id will do) the personal value holds its reason.
    """
    override = fields.pop("override", None)
    value = {**PERSONAL.get(kind, {}), **(OVERRIDE_REASON if override else {})}
    is_task = kind_of_command(kind).name == "task"
    given: dict[str, Any] = {
        "schema_version": 1,
        "tenant_id": TENANT,
        "aggregate_id": TASK if is_task else ASSIGNEE,
        "actor": make_actor(_USUAL_ROLE.get(kind, Role.WORKER)),
        "command_id": f"key-{kind}",
        "lineage": LINEAGE,
        "occurred_at": OCCURRED_AT,
        "expected_version": 0 if kind.startswith("create_") else 1,
        "personal": disclose(value)[0] if value else None,
        "override": Override(override) if isinstance(override, str) else override,
    }
    return COMMAND_TYPES[kind](**(given | _example_fields(kind) | fields))
