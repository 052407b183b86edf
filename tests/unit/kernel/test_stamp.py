"""What every event takes from its command and from the server's clock."""

from support.commands import ASSIGNEE, NOW, TENANT, make_actor, make_command
from support.contexts import make_context
from workmate_shared.kernel.ids import event_id_for
from workmate_shared.kernel.lifecycle import stamp
from workmate_shared.kernel.table import Role


def test_the_events_of_one_command_follow_each_other_without_a_gap() -> None:
    command = make_command("accept")
    stamps = [stamp(command, make_context(command), 7, index) for index in range(3)]
    assert [fields["aggregate_version"] for fields in stamps] == [8, 9, 10]
    assert [fields["event_id"] for fields in stamps] == [
        event_id_for(TENANT, ASSIGNEE, "key-accept", index) for index in range(3)
    ]


def test_an_event_says_for_whom_it_was_done_only_under_an_override() -> None:
    for override, expected in ((None, None), (ASSIGNEE, ASSIGNEE)):
        command = make_command("accept", actor=make_actor(Role.SUPERVISOR), override=override)
        fields = stamp(command, make_context(command), 0)
        assert (fields["on_behalf_of"], fields["recorded_at"]) == (expected, NOW)
