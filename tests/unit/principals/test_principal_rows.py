"""Who could do what, and since when: each command of a principal and what comes of it."""

from typing import Any

import msgspec
import pytest

from support.commands import (
    ADMIN,
    ASSIGNEE,
    DEVICE,
    NOW,
    TENANT,
    disclose,
    make_actor,
    make_command,
)
from support.contexts import CODE_HASH, Story, decide, fingerprint_of, principal_in
from workmate_shared.kernel.decision import Conflict, Rejection, Retry, Unchanged
from workmate_shared.kernel.lifecycle import PrincipalFacts
from workmate_shared.kernel.table import Role
from workmate_shared.principals import events as e
from workmate_shared.principals.commands import (
    AccessToken,
    ChangePrincipal,
    DeviceKey,
    EnrolmentCode,
    LogKey,
)
from workmate_shared.principals.principal import Principal, evolve
from workmate_shared.principals.table import PRINCIPAL_TABLE

NEW_DEVICE = make_actor(device_id="device-2")


def story_of(*kinds: str, **fields: Any) -> Story:
    """A principal that was created, and what was done to it since; fields go to the last."""
    story = Story()
    for kind in ("create_principal", *kinds[:-1]):
        story.tell(kind)
    for kind in kinds[-1:]:
        story.tell(kind, **fields)
    return story


def enrol(principal: Principal | None = None, /, **changes: Any) -> Any:
    given: dict[str, Any] = {
        "actor": NEW_DEVICE,
        "command_id": CODE_HASH,
        "expected_version": None,
    }
    facts = {name: changes.pop(name) for name in ("now",) if name in changes}
    return decide(
        principal or principal_in("active"), make_command("enrol", **given | changes), **facts
    )


def test_a_principal_begins_with_all_that_its_creation_says() -> None:
    story = story_of()
    event, principal = story.events[0], story.state
    assert isinstance(event, e.PrincipalCreated)
    assert event.personal == disclose({"display_name": "Ann Onym"})[0]
    assert (principal.principal_id, principal.tenant_id) == (ASSIGNEE, TENANT)
    assert (principal.kind, principal.state, principal.version) == ("person", "active", 1)
    assert principal.facts() == PrincipalFacts(
        True, frozenset({Role.WORKER}), frozenset({"electrical"})
    )


def test_changing_a_principal_replaces_the_lists_that_are_present() -> None:
    story = story_of("change_principal", roles=(Role.EDITOR,), skills=(), away=True)
    principal = story.state
    assert (principal.roles, principal.skills, principal.away) == ((Role.EDITOR,), (), True)
    again = story.tell("change_principal", domains=("gas",), skills=msgspec.UNSET)
    assert (again.roles, again.domains, again.away) == ((Role.EDITOR,), ("gas",), True)


def test_a_new_name_is_kept_beside_the_older_ones() -> None:
    name = disclose({"display_name": "Ann Other"}, salt=7)[0]
    story = story_of("change_principal", personal=name, skills=msgspec.UNSET)
    assert story.state.personal == (disclose({"display_name": "Ann Onym"})[0], name)


def test_a_change_that_changes_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="something to change"):
        make_command("change_principal", skills=msgspec.UNSET)
    assert isinstance(make_command("change_principal", away=False), ChangePrincipal)


def test_a_deactivated_principal_keeps_its_roles_and_is_not_active() -> None:
    principal = story_of("deactivate_principal").state
    assert (principal.state, principal.roles) == ("deactivated", (Role.WORKER,))
    assert not principal.facts().active


@pytest.mark.parametrize(
    "credential",
    [
        AccessToken(credential_id="c-1", token_hash="0e" * 32, roles=(Role.WORKER,)),
        EnrolmentCode(credential_id="c-1", code_check="0e" * 32, expires_at=NOW),
        DeviceKey(credential_id="c-1", public_key="0e" * 32),
        LogKey(credential_id="c-1", public_key="0e" * 32),
    ],
    ids=lambda credential: type(credential).__name__,
)
def test_a_credential_is_known_with_when_it_was_added(credential: Any) -> None:
    story = story_of("add_credential", actor=make_actor(Role.SYSTEM), credential=credential)
    record = story.state.credential("c-1")
    assert (record.credential, record.added_at, record.revoked) == (credential, NOW, False)
    assert story.state.credential("c-2") is None


def test_a_revoked_credential_stays_in_the_history_of_its_principal() -> None:
    story = Story()
    story.tell("create_principal")
    for name in ("c-1", "c-2"):
        token = AccessToken(credential_id=name, token_hash="0e" * 32, roles=())
        story.tell("add_credential", credential=token)
    story.tell("revoke_credential", credential_id="c-1", wipe=True)
    assert (story.state.credential("c-1").revoked, story.state.credential("c-1").wipe) == (
        True,
        True,
    )
    assert not story.state.credential("c-2").revoked


@pytest.mark.parametrize(
    ("first", "second", "repeated"),
    [(False, False, True), (True, True, True), (True, False, True), (False, True, False)],
)
def test_revoking_again_is_unchanged_unless_the_wipe_is_new(
    first: bool, second: bool, repeated: bool
) -> None:
    story = Story()
    story.tell("create_principal")
    story.tell("add_credential", actor=make_actor(Role.SYSTEM))
    story.tell("revoke_credential", wipe=first)
    command = make_command("revoke_credential", wipe=second, expected_version=None)
    assert isinstance(decide(story.state, command), Unchanged) is repeated
    if not repeated:
        assert story.tell("revoke_credential", wipe=second).credential(DEVICE).wipe


def test_a_credential_of_a_deactivated_principal_can_still_be_revoked() -> None:
    principal = principal_in("deactivated")
    command = make_command("revoke_credential", expected_version=None)
    assert decide(principal, command).status == "committed"


def test_an_administrator_gives_out_no_keys_that_sign() -> None:
    for kind in (DeviceKey, LogKey):
        key = kind(credential_id="c-1", public_key="0e" * 32)
        command = make_command("add_credential", credential=key, expected_version=None)
        details = {"role": "admin", "command": "add_credential"}
        assert decide(principal_in("active"), command) == Rejection("role_not_allowed", details)


def test_two_credentials_never_share_an_id() -> None:
    token = AccessToken(credential_id=DEVICE, token_hash="0e" * 32, roles=())
    command = make_command("add_credential", credential=token, expected_version=None)
    expected = Conflict("credential_exists", {"credential_id": DEVICE})
    assert decide(principal_in("active"), command) == expected


def test_a_device_enrols_with_the_code_that_was_given_to_its_worker() -> None:
    decision = enrol()
    (event,) = decision.events
    key = DeviceKey(credential_id="device-2", public_key="0b" * 32)
    assert isinstance(event, e.CredentialAdded)
    assert event.credential == key
    record = evolve(principal_in("active"), event).credential("device-2")
    assert record is not None
    assert record.credential == key


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"now": "2026-03-01T09:00:59.999Z"}, "committed"),
        ({"now": "2026-03-01T09:01:00.000Z"}, "enrolment_unknown"),
        ({"command_id": "0f" * 32}, "enrolment_unknown"),
        ({"actor": make_actor()}, "enrolment_unknown"),
        ({"actor": make_actor(device_id=DEVICE)}, "credential_exists"),
    ],
)
def test_a_code_enrols_one_new_device_until_it_expires(changes: dict[str, Any], code: str) -> None:
    decision = enrol(**changes)
    assert getattr(decision, "code", decision.status) == code


def test_a_revoked_code_enrols_nobody() -> None:
    revoked = make_command("revoke_credential", credential_id="code-1", expected_version=None)
    (event,) = decide(principal_in("active"), revoked).events  # type: ignore[union-attr]
    assert enrol(evolve(principal_in("active"), event)) == Retry("enrolment_unknown")


def test_a_code_of_one_worker_enrols_no_other() -> None:
    other = make_actor(principal_id="usr_other", device_id="device-2")
    assert enrol(actor=other) == Retry("not_found")


def test_a_creation_with_the_same_content_is_unchanged_and_with_other_content_a_conflict() -> None:
    created = make_command("create_principal", command_id="story-1")
    principal = principal_in("active")
    same = decide(principal, created, fingerprint=fingerprint_of(created))
    assert same == Unchanged({"state": "active", "version": principal.version})
    other = decide(principal, make_command("create_principal", roles=()))
    details = {"aggregate_id": ASSIGNEE, "version": principal.version, "state": "active"}
    assert other == Conflict("principal_exists", details)


def test_an_administrator_without_that_role_sees_nobody_else() -> None:
    command = make_command("change_principal", actor=make_actor(Role.ADMIN), expected_version=None)
    facts = PrincipalFacts(True, frozenset({Role.WORKER}))
    assert decide(principal_in("active"), command, actor=facts) == Retry("not_found")
    assert command.actor.id == ADMIN


def test_a_principal_is_the_same_projected_from_nothing_and_from_its_stored_form() -> None:
    principal: Principal | None = None
    story = story_of("change_principal", "deactivate_principal")
    for number, event in enumerate(story.events, start=1):
        principal = evolve(principal, event)
        assert (principal.version, principal.changed_version) == (number, number)
    assert principal == story.state
    assert msgspec.json.decode(msgspec.json.encode(story.state), type=Principal) == story.state


def test_no_principal_begins_with_anything_but_its_creation() -> None:
    for event in story_of("change_principal", "deactivate_principal").events[1:]:
        with pytest.raises(ValueError, match="cannot begin a principal"):
            evolve(None, event)


def test_an_event_of_something_else_changes_no_principal() -> None:
    task_event = Story()
    task_event.tell("create_task")
    task_event.tell("amend")
    with pytest.raises(ValueError, match="no event of a principal"):
        evolve(principal_in("active"), task_event.events[-1])


def test_every_row_of_a_principal_writes_an_event_that_exists() -> None:
    names = {str(kind.__struct_config__.tag) for kind in e.PrincipalEvent.__args__}
    assert {row.event for row in PRINCIPAL_TABLE.rows} == names


@pytest.mark.parametrize(
    "credential",
    [
        {"kind": "token", "credential_id": "c", "token_hash": "secret", "roles": []},
        {"kind": "token", "credential_id": "c", "token_hash": "0e" * 32, "roles": ["king"]},
        {
            "kind": "token",
            "credential_id": "c",
            "token_hash": "0e" * 32,
            "roles": [],
            "expires_at": "2026-02-30T00:00:00Z",
        },
        {
            "kind": "enrolment_code",
            "credential_id": "c",
            "code_check": "0e" * 32,
            "expires_at": "2026-02-30T00:00:00Z",
        },
        {"kind": "device", "credential_id": "c", "public_key": "0e" * 31},
        {"kind": "device", "credential_id": "c", "public_key": "0E" * 32},
        {"kind": "log_key", "credential_id": "c", "public_key": "0e" * 32, "seed": "0e" * 32},
        {"kind": "password", "credential_id": "c", "password": "secret"},
    ],
)
def test_a_credential_that_breaks_a_rule_or_holds_a_secret_is_refused(
    credential: dict[str, Any],
) -> None:
    plain = msgspec.to_builtins(make_command("add_credential")) | {"credential": credential}
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(plain, type(make_command("add_credential")))
