"""The server's tables, declared once for every database engine.

The log (`audit_event`, `command_log`, `commit_batch`) only grows: triggers refuse to change it.
Snapshots, feed, manifests, principals and credentials are projections of it and can be made again.
Times are RFC 3339 text, truth values integers; every table is STRICT where the engine knows that.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

Big = BigInteger().with_variant(Integer(), "sqlite")


_OWN: dict[str, Any] = {"registry": registry(metadata=MetaData())}


class ServerTable(SQLModel, **_OWN):
    """Base of the server's tables, with a registry of its own."""


def _text(*, key: bool = False, empty: bool = False) -> Any:
    return Field(sa_column=Column(Text, primary_key=key, nullable=empty))


def _number(*, key: bool = False, empty: bool = False) -> Any:
    return Field(sa_column=Column(Big, primary_key=key, nullable=empty, autoincrement=False))


def _bytes(*, empty: bool = False) -> Any:
    return Field(sa_column=Column(LargeBinary, nullable=empty))


def _strict(*parts: Any) -> tuple[Any, ...]:
    return (*parts, {"sqlite_strict": True})


class TenantHead(ServerTable, table=True):
    """One tenant: its name, the life of its log, and where the log ends."""

    __tablename__ = "tenant_head"
    __table_args__ = _strict()
    tenant_id: str = _text(key=True)
    name: str = _text()
    lineage: str = _text()
    seq: int = _number()
    batch: int = _number()
    header_hash: str | None = _text(empty=True)


class CommitBatch(ServerTable, table=True):
    """The signed header of each commit batch; columns repeat what the signed bytes say."""

    __tablename__ = "commit_batch"
    __table_args__ = _strict()
    tenant_id: str = _text(key=True)
    batch: int = _number(key=True)
    lineage: str = _text()
    header: bytes = _bytes()
    keyid: str = _text()
    signature: bytes = _bytes()
    header_hash: str = _text()
    first_seq: int = _number()
    last_seq: int = _number()
    leaf_count: int = _number()
    server_time: str = _text()


class AuditEvent(ServerTable, table=True):
    """The log: every event, gap-free by `seq` in its tenant and by version in its aggregate."""

    __tablename__ = "audit_event"
    __table_args__ = _strict(
        UniqueConstraint("tenant_id", "aggregate_id", "aggregate_version"),
        UniqueConstraint("tenant_id", "event_id"),
    )
    tenant_id: str = _text(key=True)
    seq: int = _number(key=True)
    event_id: str = _text()
    aggregate_type: str = _text()
    aggregate_id: str = _text()
    aggregate_version: int = _number()
    type: str = _text()
    schema_version: int = _number()
    actor_id: str = _text()
    actor_role: str = _text()
    device_id: str | None = _text(empty=True)
    command_id: str = _text()
    occurred_at: str = _text()
    recorded_at: str = _text()
    payload: bytes = _bytes()
    batch: int = _number()
    leaf_index: int = _number()


class CommandLog(ServerTable, table=True):
    """Every decided command: its bytes, how it ended, and its leaf in its batch."""

    __tablename__ = "command_log"
    __table_args__ = _strict(
        UniqueConstraint("tenant_id", "batch", "leaf_index"),
        Index("command_log_aggregate", "tenant_id", "aggregate_id", "principal_id"),
    )
    tenant_id: str = _text(key=True)
    principal_id: str = _text(key=True)
    command_id: str = _text(key=True)
    lineage: str = _text()
    fingerprint: str = _text()
    name: str = _text()
    aggregate_type: str = _text()
    aggregate_id: str = _text()
    after: str | None = _text(empty=True)
    command: bytes = _bytes()
    keyid: str | None = _text(empty=True)
    signature: bytes | None = _bytes(empty=True)
    outcome: str = _text()
    code: str | None = _text(empty=True)
    version: int = _number()
    first_seq: int | None = _number(empty=True)
    last_seq: int | None = _number(empty=True)
    batch: int = _number()
    leaf_index: int = _number()
    leaf: bytes = _bytes()


class DisclosureRow(ServerTable, table=True):
    """What opens a commitment, until it is purged."""

    __tablename__ = "disclosure"
    __table_args__ = _strict(Index("disclosure_aggregate", "tenant_id", "aggregate_id"))
    tenant_id: str = _text(key=True)
    commitment: str = _text(key=True)
    salt: str = _text()
    retention_class: str = _text()
    value: str = _text()
    aggregate_id: str = _text()
    keep_until: str | None = _text(empty=True)


class TaskSnapshot(ServerTable, table=True):
    """The current state of each task, and what lists filter and sort by."""

    __tablename__ = "task_snapshot"
    __table_args__ = _strict(
        UniqueConstraint("tenant_id", "source", "external_id"),
        Index("task_snapshot_assignee", "tenant_id", "assignee_id", "state"),
        Index("task_snapshot_due", "tenant_id", "due_utc", "task_id"),
        Index("task_snapshot_changed", "tenant_id", "changed_seq"),
        Index("task_snapshot_state", "tenant_id", "state", "due_utc", "task_id"),
    )
    tenant_id: str = _text(key=True)
    task_id: str = _text(key=True)
    source: str = _text()
    external_id: str = _text()
    state: str = _text()
    version: int = _number()
    changed_version: int = _number()
    assignee_id: str | None = _text(empty=True)
    due_utc: str = _text()
    changed_seq: int = _number()
    site_text: str | None = _text(empty=True)
    mappls_pin: str | None = _text(empty=True)
    snapshot: bytes = _bytes()


class PrincipalRow(ServerTable, table=True):
    """The current state of each principal."""

    __tablename__ = "principal"
    __table_args__ = _strict()
    tenant_id: str = _text(key=True)
    principal_id: str = _text(key=True)
    kind: str = _text()
    state: str = _text()
    version: int = _number()
    snapshot: bytes = _bytes()


class CredentialRow(ServerTable, table=True):
    """The current state of each credential; `lookup` is a public key or the hash of a secret."""

    __tablename__ = "credential"
    __table_args__ = _strict(
        Index("credential_lookup", "kind", "lookup"),
        Index("credential_principal", "tenant_id", "principal_id"),
    )
    tenant_id: str = _text(key=True)
    credential_id: str = _text(key=True)
    principal_id: str = _text()
    kind: str = _text()
    lookup: str = _text()
    expires_at: str | None = _text(empty=True)
    revoked: int = _number()
    added_seq: int = _number()


class EvidenceManifest(ServerTable, table=True):
    """Every manifest that a task knows, with its bytes and its status."""

    __tablename__ = "evidence_manifest"
    __table_args__ = _strict(
        UniqueConstraint("tenant_id", "task_id", "content_hash"),
        Index("evidence_manifest_status", "tenant_id", "status"),
    )
    tenant_id: str = _text(key=True)
    task_id: str = _text(key=True)
    manifest_id: str = _text(key=True)
    content_hash: str = _text()
    manifest: bytes = _bytes()
    capture_time: str = _text()
    task_version: int = _number()
    retention_class: str = _text()
    author_id: str = _text()
    status: str = _text()


class FeedRow(ServerTable, table=True):
    """For each audience, the seq of the last event that changed an object for it."""

    __tablename__ = "feed"
    __table_args__ = _strict(Index("feed_order", "tenant_id", "audience", "seq"))
    tenant_id: str = _text(key=True)
    audience: str = _text(key=True)
    kind: str = _text(key=True)
    object_id: str = _text(key=True)
    seq: int = _number()
    removed_why: str | None = _text(empty=True)


class BlobRow(ServerTable, table=True):
    """A file that is or was held: its hash, size and type, and when its hash was verified."""

    __tablename__ = "blob"
    __table_args__ = _strict()
    tenant_id: str = _text(key=True)
    hash: str = _text(key=True)
    size: int = _number()
    media_type: str = _text()
    verified_at: str = _text()
    purged_at: str | None = _text(empty=True)


class BlobLink(ServerTable, table=True):
    """Who uploaded a file for which task."""

    __tablename__ = "blob_link"
    __table_args__ = _strict(Index("blob_link_task", "tenant_id", "task_id"))
    tenant_id: str = _text(key=True)
    hash: str = _text(key=True)
    task_id: str = _text(key=True)
    principal_id: str = _text(key=True)
    stored_at: str = _text()


class UploadRow(ServerTable, table=True):
    """An unfinished upload."""

    __tablename__ = "upload"
    __table_args__ = _strict()
    upload_id: str = _text(key=True)
    tenant_id: str = _text()
    principal_id: str = _text()
    task_id: str = _text()
    hash: str = _text()
    size: int = _number()
    filename: str = _text()
    media_type: str = _text()
    created_at: str = _text()


class LocationAccess(ServerTable, table=True):
    """Who read whose precise position, when and for what purpose."""

    __tablename__ = "location_access"
    __table_args__ = _strict(Index("location_access_subject", "tenant_id", "subject_id"))
    tenant_id: str = _text(key=True)
    access_id: str = _text(key=True)
    subject_id: str = _text()
    reader_id: str = _text()
    purpose: str = _text()
    retention_class: str = _text()
    object_id: str = _text()
    read_at: str = _text()


class SubscriptionRow(ServerTable, table=True):
    """Somebody who gets every event, and which relay works for him under which fencing token."""

    __tablename__ = "subscription"
    __table_args__ = _strict()
    tenant_id: str = _text(key=True)
    subscription_id: str = _text(key=True)
    kind: str = _text()
    target: str = _text()
    sealed_secret: bytes | None = _bytes(empty=True)
    active: int = _number()
    lease_owner: str | None = _text(empty=True)
    lease_until: str | None = _text(empty=True)
    fencing: int = _number()


class OutboxRow(ServerTable, table=True):
    """One event for one subscription, until it is delivered or a dead letter."""

    __tablename__ = "outbox"
    __table_args__ = _strict(
        UniqueConstraint("tenant_id", "subscription_id", "seq"),
        Index("outbox_due", "tenant_id", "subscription_id", "status", "next_attempt_at"),
    )
    outbox_id: str = _text(key=True)
    tenant_id: str = _text()
    subscription_id: str = _text()
    seq: int = _number()
    event_id: str = _text()
    aggregate_id: str = _text()
    status: str = _text()
    attempts: int = _number()
    next_attempt_at: str = _text()
    last_error: str | None = _text(empty=True)


class DeliveryAttempt(ServerTable, table=True):
    """What a receiver answered to one attempt."""

    __tablename__ = "delivery_attempt"
    __table_args__ = _strict()
    outbox_id: str = _text(key=True)
    attempt: int = _number(key=True)
    at: str = _text()
    status_code: int | None = _number(empty=True)
    response: str | None = _text(empty=True)


class SessionRow(ServerTable, table=True):
    """A device session, by the hash of its bearer token."""

    __tablename__ = "session"
    __table_args__ = _strict()
    token_hash: str = _text(key=True)
    tenant_id: str = _text()
    principal_id: str = _text()
    device_id: str = _text()
    expires_at: str = _text()


class NonceRow(ServerTable, table=True):
    """A challenge that a device may answer once."""

    __tablename__ = "nonce"
    __table_args__ = _strict()
    nonce: str = _text(key=True)
    tenant_id: str = _text()
    device_id: str = _text()
    expires_at: str = _text()


class CredentialUse(ServerTable, table=True):
    """When a token was last used, and what a device last said of itself (JSON)."""

    __tablename__ = "credential_use"
    __table_args__ = _strict()
    tenant_id: str = _text(key=True)
    credential_id: str = _text(key=True)
    last_used_at: str = _text()
    report: str | None = _text(empty=True)


LOG_TABLES = ("audit_event", "command_log", "commit_batch")
"""Tables that only grow."""

PROJECTIONS = ("task_snapshot", "principal", "credential", "evidence_manifest", "feed")
"""Tables that the log alone makes again."""


def table_of(model: type[SQLModel]) -> Any:
    """Return the Core table behind a model."""
    return model.__table__  # type: ignore[attr-defined]
