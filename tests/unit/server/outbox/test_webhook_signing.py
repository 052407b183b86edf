"""What a webhook carries and how it is signed."""

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime

import pytest

from workmate_server.outbox.signing import (
    SecretError,
    cloud_event,
    headers_for,
    make_secret,
    open_secret,
    seal_secret,
    sign,
)
from workmate_server.store.deliveries import Due
from workmate_server.telemetry.system import SystemEntropy

KEY = bytes(range(32))
ENTROPY = SystemEntropy()
DUE = Due(
    outbox_id="hook-1/7",
    tenant_id="tenant-1",
    subscription_id="hook-1",
    seq=7,
    event_id="event-7",
    aggregate_id="task-1",
    attempts=0,
    type="task.accepted",
    aggregate_version=3,
    recorded_at="2026-03-01T09:00:00.000Z",
    payload=b'{"type":"task.accepted", "aggregate_version":3}',
)


def test_the_signature_is_the_hmac_of_id_time_and_body() -> None:
    secret = "whsec_" + base64.b64encode(b"k" * 24).decode()
    wanted = hmac.new(b"k" * 24, b'msg-1.1614265330.{"a":1}', hashlib.sha256).digest()
    assert sign(secret, "msg-1", 1614265330, b'{"a":1}') == (
        "v1," + base64.b64encode(wanted).decode()
    )


def test_the_headers_name_the_event_and_the_time_of_the_attempt() -> None:
    secret = make_secret(ENTROPY)
    now = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
    headers = headers_for(secret, "event-7", now, b"{}")
    assert headers["webhook-id"] == "event-7"
    assert headers["webhook-timestamp"] == str(int(now.timestamp()))
    assert headers["webhook-signature"] == sign(secret, "event-7", int(now.timestamp()), b"{}")
    assert headers["Content-Type"] == "application/cloudevents+json"


def test_the_body_is_a_cloud_event_around_the_exact_payload() -> None:
    body = cloud_event(DUE)
    event = json.loads(body)
    assert DUE.payload in body
    assert event["data"] == json.loads(DUE.payload)
    assert {name: event[name] for name in ("specversion", "id", "source", "type", "subject")} == {
        "specversion": "1.0",
        "id": "event-7",
        "source": "urn:workmate:tenant-1",
        "type": "task.accepted",
        "subject": "task-1",
    }
    assert all(name.isalnum() and name.islower() for name in event)
    assert cloud_event(DUE) == body


def test_a_secret_is_sealed_at_rest_and_opened_with_the_sealing_key() -> None:
    secret = make_secret(ENTROPY)
    sealed = seal_secret(secret, KEY, ENTROPY)
    assert secret.encode() not in sealed
    assert sealed != seal_secret(secret, KEY, ENTROPY)
    assert open_secret(sealed, KEY) == secret


@pytest.mark.parametrize("sealed", [b"", b"short", b"x" * 90])
def test_a_secret_that_the_sealing_key_does_not_open_is_refused(sealed: bytes) -> None:
    with pytest.raises(SecretError):
        open_secret(sealed, KEY)


def test_a_secret_that_is_no_secret_signs_nothing() -> None:
    with pytest.raises(SecretError):
        sign("whsec_???", "msg-1", 1, b"")
