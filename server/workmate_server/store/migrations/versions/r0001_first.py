"""The first schema: log, projections, evidence, outbox and sessions."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
LOG = ("audit_event", "command_log", "commit_batch")


def upgrade() -> None:
    """Create every table, its indexes, and the triggers that keep the log from changing."""
    for create in TABLES:
        create()
    for table in LOG:
        for act in ("update", "delete"):
            guard(table, act)


def guard(table: str, act: str) -> None:
    """Refuse UPDATE or DELETE on a table of the log."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            f"CREATE TRIGGER {table}_{act} BEFORE {act.upper()} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{table} only grows'); END"
        )
        return
    op.execute(
        f"CREATE FUNCTION {table}_{act}() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{table} only grows'; END $$"
    )
    op.execute(
        f"CREATE TRIGGER {table}_{act} BEFORE {act.upper()} ON {table} "
        f"FOR EACH ROW EXECUTE FUNCTION {table}_{act}()"
    )


def _audit_event() -> None:
    op.create_table(
        "audit_event",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("aggregate_type", sa.Text(), nullable=False),
        sa.Column("aggregate_id", sa.Text(), nullable=False),
        sa.Column("aggregate_version", BIG, nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("schema_version", BIG, nullable=False),
        sa.Column("actor_id", sa.Text(), nullable=False),
        sa.Column("actor_role", sa.Text(), nullable=False),
        sa.Column("device_id", sa.Text(), nullable=True),
        sa.Column("command_id", sa.Text(), nullable=False),
        sa.Column("occurred_at", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("batch", BIG, nullable=False),
        sa.Column("leaf_index", BIG, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "seq"),
        sa.UniqueConstraint("tenant_id", "aggregate_id", "aggregate_version"),
        sa.UniqueConstraint("tenant_id", "event_id"),
        sqlite_strict=True,
    )


def _blob() -> None:
    op.create_table(
        "blob",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("size", BIG, nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("verified_at", sa.Text(), nullable=False),
        sa.Column("purged_at", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "hash"),
        sqlite_strict=True,
    )


def _blob_link() -> None:
    op.create_table(
        "blob_link",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("principal_id", sa.Text(), nullable=False),
        sa.Column("stored_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "hash", "task_id", "principal_id"),
        sqlite_strict=True,
    )
    op.create_index("blob_link_task", "blob_link", ["tenant_id", "task_id"], unique=False)


def _command_log() -> None:
    op.create_table(
        "command_log",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("principal_id", sa.Text(), nullable=False),
        sa.Column("command_id", sa.Text(), nullable=False),
        sa.Column("lineage", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("aggregate_type", sa.Text(), nullable=False),
        sa.Column("aggregate_id", sa.Text(), nullable=False),
        sa.Column("after", sa.Text(), nullable=True),
        sa.Column("command", sa.LargeBinary(), nullable=False),
        sa.Column("keyid", sa.Text(), nullable=True),
        sa.Column("signature", sa.LargeBinary(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("version", BIG, nullable=False),
        sa.Column("first_seq", BIG, nullable=True),
        sa.Column("last_seq", BIG, nullable=True),
        sa.Column("batch", BIG, nullable=False),
        sa.Column("leaf_index", BIG, nullable=False),
        sa.Column("leaf", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "principal_id", "command_id"),
        sa.UniqueConstraint("tenant_id", "batch", "leaf_index"),
        sqlite_strict=True,
    )
    op.create_index(
        "command_log_aggregate",
        "command_log",
        ["tenant_id", "aggregate_id", "principal_id"],
        unique=False,
    )


def _commit_batch() -> None:
    op.create_table(
        "commit_batch",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("batch", BIG, nullable=False),
        sa.Column("lineage", sa.Text(), nullable=False),
        sa.Column("header", sa.LargeBinary(), nullable=False),
        sa.Column("keyid", sa.Text(), nullable=False),
        sa.Column("signature", sa.LargeBinary(), nullable=False),
        sa.Column("header_hash", sa.Text(), nullable=False),
        sa.Column("first_seq", BIG, nullable=False),
        sa.Column("last_seq", BIG, nullable=False),
        sa.Column("leaf_count", BIG, nullable=False),
        sa.Column("server_time", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "batch"),
        sqlite_strict=True,
    )


def _credential() -> None:
    op.create_table(
        "credential",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("credential_id", sa.Text(), nullable=False),
        sa.Column("principal_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("lookup", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.Text(), nullable=True),
        sa.Column("revoked", BIG, nullable=False),
        sa.Column("added_seq", BIG, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "credential_id"),
        sqlite_strict=True,
    )
    op.create_index("credential_lookup", "credential", ["kind", "lookup"], unique=False)
    op.create_index(
        "credential_principal", "credential", ["tenant_id", "principal_id"], unique=False
    )


def _credential_use() -> None:
    op.create_table(
        "credential_use",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("credential_id", sa.Text(), nullable=False),
        sa.Column("last_used_at", sa.Text(), nullable=False),
        sa.Column("report", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "credential_id"),
        sqlite_strict=True,
    )


def _delivery_attempt() -> None:
    op.create_table(
        "delivery_attempt",
        sa.Column("outbox_id", sa.Text(), nullable=False),
        sa.Column("attempt", BIG, nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("status_code", BIG, nullable=True),
        sa.Column("response", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("outbox_id", "attempt"),
        sqlite_strict=True,
    )


def _disclosure() -> None:
    op.create_table(
        "disclosure",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("commitment", sa.Text(), nullable=False),
        sa.Column("salt", sa.Text(), nullable=False),
        sa.Column("retention_class", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("aggregate_id", sa.Text(), nullable=False),
        sa.Column("keep_until", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "commitment"),
        sqlite_strict=True,
    )
    op.create_index(
        "disclosure_aggregate", "disclosure", ["tenant_id", "aggregate_id"], unique=False
    )


def _evidence_manifest() -> None:
    op.create_table(
        "evidence_manifest",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("manifest_id", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("manifest", sa.LargeBinary(), nullable=False),
        sa.Column("capture_time", sa.Text(), nullable=False),
        sa.Column("task_version", BIG, nullable=False),
        sa.Column("retention_class", sa.Text(), nullable=False),
        sa.Column("author_id", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "task_id", "manifest_id"),
        sa.UniqueConstraint("tenant_id", "task_id", "content_hash"),
        sqlite_strict=True,
    )
    op.create_index(
        "evidence_manifest_status", "evidence_manifest", ["tenant_id", "status"], unique=False
    )


def _feed() -> None:
    op.create_table(
        "feed",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("audience", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("object_id", sa.Text(), nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("removed_why", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "audience", "kind", "object_id"),
        sqlite_strict=True,
    )
    op.create_index("feed_order", "feed", ["tenant_id", "audience", "seq"], unique=False)


def _location_access() -> None:
    op.create_table(
        "location_access",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("access_id", sa.Text(), nullable=False),
        sa.Column("subject_id", sa.Text(), nullable=False),
        sa.Column("reader_id", sa.Text(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("retention_class", sa.Text(), nullable=False),
        sa.Column("object_id", sa.Text(), nullable=False),
        sa.Column("read_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "access_id"),
        sqlite_strict=True,
    )
    op.create_index(
        "location_access_subject", "location_access", ["tenant_id", "subject_id"], unique=False
    )


def _nonce() -> None:
    op.create_table(
        "nonce",
        sa.Column("nonce", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("nonce"),
        sqlite_strict=True,
    )


def _outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("outbox_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("subscription_id", sa.Text(), nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("aggregate_id", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("attempts", BIG, nullable=False),
        sa.Column("next_attempt_at", sa.Text(), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("outbox_id"),
        sa.UniqueConstraint("tenant_id", "subscription_id", "seq"),
        sqlite_strict=True,
    )
    op.create_index(
        "outbox_due",
        "outbox",
        ["tenant_id", "subscription_id", "status", "next_attempt_at"],
        unique=False,
    )


def _principal() -> None:
    op.create_table(
        "principal",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("principal_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("version", BIG, nullable=False),
        sa.Column("snapshot", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "principal_id"),
        sqlite_strict=True,
    )


def _session() -> None:
    op.create_table(
        "session",
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("principal_id", sa.Text(), nullable=False),
        sa.Column("device_id", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("token_hash"),
        sqlite_strict=True,
    )


def _subscription() -> None:
    op.create_table(
        "subscription",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("subscription_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("sealed_secret", sa.LargeBinary(), nullable=True),
        sa.Column("active", BIG, nullable=False),
        sa.Column("lease_owner", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.Text(), nullable=True),
        sa.Column("fencing", BIG, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "subscription_id"),
        sqlite_strict=True,
    )


def _task_snapshot() -> None:
    op.create_table(
        "task_snapshot",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("version", BIG, nullable=False),
        sa.Column("changed_version", BIG, nullable=False),
        sa.Column("assignee_id", sa.Text(), nullable=True),
        sa.Column("due_utc", sa.Text(), nullable=False),
        sa.Column("changed_seq", BIG, nullable=False),
        sa.Column("site_text", sa.Text(), nullable=True),
        sa.Column("mappls_pin", sa.Text(), nullable=True),
        sa.Column("snapshot", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "task_id"),
        sa.UniqueConstraint("tenant_id", "source", "external_id"),
        sqlite_strict=True,
    )
    op.create_index(
        "task_snapshot_assignee",
        "task_snapshot",
        ["tenant_id", "assignee_id", "state"],
        unique=False,
    )
    op.create_index(
        "task_snapshot_changed", "task_snapshot", ["tenant_id", "changed_seq"], unique=False
    )
    op.create_index(
        "task_snapshot_due", "task_snapshot", ["tenant_id", "due_utc", "task_id"], unique=False
    )
    op.create_index(
        "task_snapshot_state",
        "task_snapshot",
        ["tenant_id", "state", "due_utc", "task_id"],
        unique=False,
    )


def _tenant_head() -> None:
    op.create_table(
        "tenant_head",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("lineage", sa.Text(), nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("batch", BIG, nullable=False),
        sa.Column("header_hash", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id"),
        sqlite_strict=True,
    )


def _upload() -> None:
    op.create_table(
        "upload",
        sa.Column("upload_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("principal_id", sa.Text(), nullable=False),
        sa.Column("task_id", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("size", BIG, nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("upload_id"),
        sqlite_strict=True,
    )


TABLES = (
    _audit_event,
    _blob,
    _blob_link,
    _command_log,
    _commit_batch,
    _credential,
    _credential_use,
    _delivery_attempt,
    _disclosure,
    _evidence_manifest,
    _feed,
    _location_access,
    _nonce,
    _outbox,
    _principal,
    _session,
    _subscription,
    _task_snapshot,
    _tenant_head,
    _upload,
)
