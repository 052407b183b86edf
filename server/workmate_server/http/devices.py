"""Devices: which are enrolled, when they were last heard of, and how to end one."""

from typing import Any

import msgspec
from aiohttp import web

from workmate_server.http.credentials import list_credentials, revoke_credential
from workmate_server.http.headers import path_id
from workmate_shared.principals.principal import CredentialRecord


async def list_devices(request: web.Request) -> web.StreamResponse:
    """List the devices of the tenant with their last contact and what they last said."""
    return await list_credentials(request, "device", _device_item)


def _device_item(row: Any, record: CredentialRecord | None) -> dict[str, Any]:
    return {
        "device_id": row.credential_id,
        "principal_id": row.principal_id,
        "public_key": row.lookup,
        "added_at": None if record is None else record.added_at,
        "revoked": bool(row.revoked),
        "wipe": record is not None and record.wipe,
        "last_contact_at": row.last_used_at,
        "report": None if row.report is None else msgspec.Raw(row.report.encode()),
    }


async def revoke_device(request: web.Request) -> web.StreamResponse:
    """Revoke a device, with `wipe` also asking it to remove its data."""
    device_id = path_id(request, "device_id")
    return await revoke_credential(request, "device", device_id, "device_id", key_needed=True)


routes = [
    web.get("/v1/devices", list_devices),
    web.post("/v1/devices/{device_id}/revoke", revoke_device),
]
"""The addresses of devices."""
