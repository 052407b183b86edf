"""The log over HTTP: exact, complete for those who audit, and closed where it must be."""

import msgspec

from support.office import Office, assert_problem
from workmate_shared.kernel.table import Role
from workmate_shared.wire.batch import decode_header, decode_leaf, header_hash
from workmate_shared.wire.dsse import BATCH_TYPE, Envelope, open_envelope
from workmate_shared.wire.tree import leaf_hash, tree_root

S = Role.SUPERVISOR


async def test_events_follow_a_seq_and_next_goes_on(office: Office) -> None:
    await office.job("en_route")
    auditor = await office.somebody(Role.AUDITOR)
    whole = (await auditor.get("/v1/log?limit=500")).json
    assert whole["next"] is None
    seqs = [event["seq"] for event in whole["events"]]
    assert seqs == list(range(1, len(seqs) + 1))
    found, path = [], "/v1/log?limit=4"
    while path:
        answer = await auditor.get(path)
        found += answer.json["events"]
        link = answer.headers.get("Link")
        path = link[1 : link.index(">")] if link else ""
    assert found == whole["events"]
    after = (await auditor.get(f"/v1/log?after={seqs[-1]}")).json
    assert after == {"events": [], "next": None}


async def test_events_of_principals_are_for_administrators_and_auditors(office: Office) -> None:
    await office.job()
    for role, expected in (
        (S, {"task.created"}),
        (Role.INTEGRATION, {"task.created"}),
        (Role.ADMIN, {"task.created", "principal.created", "credential.added"}),
    ):
        person = await office.somebody(role)
        events = (await person.get("/v1/log?limit=500")).json["events"]
        assert {event["type"] for event in events} == expected
        assert (await person.get("/v1/log?limit=1")).json["events"] == events[:1]


async def test_values_in_the_log_are_for_those_who_may_open_them(office: Office) -> None:
    await office.job("assigned")
    for role, opened in (
        (Role.AUDITOR, True),
        (Role.DISPATCHER, True),
        (S, True),
        (Role.ADMIN, False),
    ):
        person = await office.somebody(role)
        answer = await person.get("/v1/log?limit=500")
        assert ("nearest with the skill" in answer.body.decode()) is opened


async def test_batches_chain_and_their_leaves_make_the_signed_root(office: Office) -> None:
    await office.job("proof_pending")
    supervisor = await office.somebody(S)
    found, path = [], "/v1/log/batches?limit=3"
    while path:
        answer = await supervisor.get(path)
        found += answer.json["items"]
        link = answer.headers.get("Link")
        path = link[1 : link.index(">")] if link else ""
    assert [item["batch"] for item in found] == list(range(1, len(found) + 1))
    previous = None
    for item in found:
        envelope = msgspec.convert(item["header"], Envelope)
        signed = open_envelope(envelope, BATCH_TYPE, office.log_keys)
        header = decode_header(signed)
        leaves = [leaf.encode() for leaf in item["leaves"]]
        assert header.previous == previous
        assert header.batch == item["batch"]
        assert header.leaf_count == len(leaves)
        assert tree_root([leaf_hash(leaf) for leaf in leaves]).hex() == header.root
        assert all(decode_leaf(leaf).tenant_id == office.tenant.tenant_id for leaf in leaves)
        previous = header_hash(signed)


async def test_a_place_that_is_no_number_is_refused(office: Office) -> None:
    for path in ("/v1/log?after=x", "/v1/log/batches?after=-1", "/v1/log?cursor=1"):
        assert_problem(await office.admin.get(path), "invalid_request")
