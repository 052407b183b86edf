"""What stands between a proof and completion: one finding for each thing missing or wrong."""

from decimal import Decimal, InvalidOperation
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.commands import (
    ANSWERS,
    DRAWING,
    FIX,
    OTHER_FILE,
    PHOTO,
    SITE,
    make_manifest,
    make_photo,
    make_policy,
    make_signature,
)
from workmate_shared.kernel.lifecycle import Blob
from workmate_shared.tasks.manifest import AnswerItem, ConsentItem, ManifestItem
from workmate_shared.tasks.policy import (
    BarcodeItem,
    ChecklistItem,
    ChoiceItem,
    ConfirmItem,
    ConsentText,
    DateItem,
    NumberItem,
    PhotoSlot,
    ProofPolicy,
    TextItem,
    policy_version,
)
from workmate_shared.tasks.proof import (
    Facts,
    Finding,
    advise,
    check_answer,
    distance_m,
    evaluate,
    is_decimal,
)
from workmate_shared.tasks.values import Fix, ManifestPersonal, SitePosition

SUBMITTED_AT = "2026-03-01T09:00:00Z"
METRE_E7 = 90
"""About one metre of latitude, in 1e-7 degree."""


def make_facts(**changes: Any) -> Facts:
    given: dict[str, Any] = {
        "personal": ManifestPersonal(**ANSWERS),
        "fixes": {"after-1": Fix(**FIX)},
        "blobs": {PHOTO: Blob(verified=True), DRAWING: Blob(verified=True)},
        "site": SitePosition(**SITE),
        "policy_version": policy_version(make_policy()),
        "submitted_at": SUBMITTED_AT,
    }
    return Facts(**(given | changes))


def judge_item(item: ChecklistItem, answer: bool | str | None) -> list[str]:
    """Return the codes of the findings for one checklist item and the answer to it."""
    policy = ProofPolicy(checklist=(item,))
    answers = {} if answer is None else {item.item_id: answer}
    manifest = make_manifest(items=(AnswerItem(item_id=item.item_id),))
    facts = Facts(personal=ManifestPersonal(answers=answers))
    return [finding.code for finding in evaluate(policy, manifest, facts)]


def judge_photos(slot: PhotoSlot, *photos: ManifestItem, **facts: Any) -> tuple[Finding, ...]:
    manifest = make_manifest(items=photos)
    return evaluate(ProofPolicy(photos=(slot,)), manifest, Facts(**facts))


def judge_people(policy: ProofPolicy, names: dict[str, str], *items: ManifestItem) -> list[Finding]:
    facts = Facts(personal=ManifestPersonal(names=names))
    return list(evaluate(policy, make_manifest(items=items), facts))


def test_a_proof_that_has_everything_has_no_finding() -> None:
    assert evaluate(make_policy(), make_manifest(), make_facts()) == ()
    assert advise(make_policy(), make_manifest(), make_facts()) == ()


def test_an_empty_policy_finds_nothing_in_an_empty_proof() -> None:
    assert evaluate(ProofPolicy(), make_manifest(items=()), Facts()) == ()


def test_a_proof_for_another_policy_is_found_out() -> None:
    facts = make_facts(policy_version="0a" * 32)
    (finding,) = evaluate(make_policy(), make_manifest(), facts)
    assert (finding.code, finding.wanted) == ("policy_differs", "0a" * 32)
    assert finding.found == make_manifest().policy_version


CONFIRM = ConfirmItem(item_id="x", prompt="?")
REQUIRED = ConfirmItem(item_id="x", prompt="?", required=True)
MUST_BE_NO = ConfirmItem(item_id="x", prompt="?", passes=False)
NUMBER = NumberItem(item_id="x", prompt="?", unit="V", min="-0.5", max="250")
EXACT = NumberItem(item_id="x", prompt="?", passes="230.0")
CHOICE = ChoiceItem(item_id="x", prompt="?", options=("OK", "Not OK"), passes="OK")
TEXT = TextItem(item_id="x", prompt="?", passes="Sealed", required=True)
DAY = DateItem(item_id="x", prompt="?", passes="2026-03-01")
ANY_DAY = DateItem(item_id="x", prompt="?")
CODE = BarcodeItem(item_id="x", prompt="?", passes="AB-12")


@pytest.mark.parametrize(
    ("item", "answer", "codes"),
    [
        (CONFIRM, None, []),
        (CONFIRM, False, []),
        (CONFIRM, "true", ["answer_invalid"]),
        (CONFIRM, "", []),
        (REQUIRED, None, ["answer_missing"]),
        (REQUIRED, False, []),
        (MUST_BE_NO, True, ["answer_does_not_pass"]),
        (MUST_BE_NO, False, []),
        (NUMBER, "-0.5", []),
        (NUMBER, "250", []),
        (NUMBER, "250.000", []),
        (NUMBER, "250.000000000000000001", ["answer_out_of_bounds"]),
        (NUMBER, "-0.500000000000000001", ["answer_out_of_bounds"]),
        (NUMBER, "12,5", ["answer_invalid"]),
        (NUMBER, "1e2", ["answer_invalid"]),
        (NUMBER, "NaN", ["answer_invalid"]),
        (NUMBER, "Infinity", ["answer_invalid"]),
        (NUMBER, " 12", ["answer_invalid"]),
        (NUMBER, True, ["answer_invalid"]),
        (EXACT, "230", []),
        (EXACT, "230.01", ["answer_does_not_pass"]),
        (CHOICE, "OK", []),
        (CHOICE, "Not OK", ["answer_does_not_pass"]),
        (CHOICE, "ok", ["answer_invalid"]),
        (TEXT, "Sealed", []),
        (TEXT, "sealed", ["answer_does_not_pass"]),
        (TEXT, " \n", ["answer_missing"]),
        (DAY, "2026-03-01", []),
        (DAY, "2026-03-02", ["answer_does_not_pass"]),
        (ANY_DAY, "2024-02-29", []),
        (ANY_DAY, "2026-02-29", ["answer_invalid"]),
        (ANY_DAY, "20260301", ["answer_invalid"]),
        (ANY_DAY, "2026-W09-7", ["answer_invalid"]),
        (ANY_DAY, "2026-03-01\n", ["answer_invalid"]),
        (ANY_DAY, "\u0662026-03-01", ["answer_invalid"]),
        (CODE, "AB-12", []),
        (CODE, "ab-12", ["answer_does_not_pass"]),
    ],
)
def test_an_answer_is_judged_by_its_kind(
    item: ChecklistItem, answer: bool | str | None, codes: list[str]
) -> None:
    assert judge_item(item, answer) == codes


def test_a_finding_shows_what_was_wanted_as_the_policy_wrote_it() -> None:
    for item, answer, wanted in (
        (CHOICE, "Not OK", "OK"),
        (CHOICE, "nothing", "OK or Not OK"),
        (MUST_BE_NO, True, "false"),
        (NUMBER, "251", "-0.5 to 250 V"),
        (NumberItem(item_id="x", prompt="?", max="1"), "2", "any to 1"),
        (NUMBER, "x", "a number V"),
        (ANY_DAY, "x", "YYYY-MM-DD"),
        (CONFIRM, "x", "yes or no"),
        (CODE, "ab-12", "AB-12"),
    ):
        policy = ProofPolicy(checklist=(item,))
        manifest = make_manifest(items=(AnswerItem(item_id="x"),))
        facts = Facts(personal=ManifestPersonal(answers={"x": answer}))
        (finding,) = evaluate(policy, manifest, facts)
        assert (finding.about, finding.wanted, finding.found) == ("x", wanted, None)


def test_an_answer_without_its_item_in_the_manifest_is_no_answer() -> None:
    facts = Facts(personal=ManifestPersonal(answers={"x": True}))
    (finding,) = evaluate(ProofPolicy(checklist=(REQUIRED,)), make_manifest(items=()), facts)
    assert finding.code == "answer_missing"


def test_an_answer_can_be_checked_by_itself_as_it_is_typed() -> None:
    assert check_answer(NUMBER, "231") is None
    assert check_answer(NUMBER, "251") == Finding("answer_out_of_bounds", "x", "-0.5 to 250 V")


SLOT = PhotoSlot(slot="after", prompt="?", min=2, max=3)
AFTER = PhotoSlot(slot="after", prompt="?", min=1, max=3)


@pytest.mark.parametrize(
    ("hashes", "codes"),
    [
        ([], ["photos_missing"]),
        (["01"], ["photos_missing"]),
        (["01", "01"], ["photos_missing"]),
        (["01", "02"], []),
        (["01", "02", "03"], []),
        (["01", "02", "03", "04"], ["too_many_photos"]),
        (["01", "02", "02", "02"], ["too_many_photos"]),
    ],
)
def test_photos_are_counted_and_one_photo_under_two_items_counts_once(
    hashes: list[str], codes: list[str]
) -> None:
    photos = [make_photo(f"p{n}", hash=digits * 32) for n, digits in enumerate(hashes)]
    assert [finding.code for finding in judge_photos(SLOT, *photos)] == codes


def test_missing_photos_are_told_with_how_many_there_are() -> None:
    (finding,) = judge_photos(SLOT, make_photo("p1"))
    assert finding == Finding("photos_missing", "after", "2", "1")
    assert finding.public() == {"code": "photos_missing", "about": "after", "wanted": "2"}


def test_photos_of_no_slot_and_files_that_are_no_image_are_found() -> None:
    odd = make_photo("p1", slot="before"), make_photo("p2", media_type="application/pdf")
    assert judge_photos(AFTER, *odd) == (
        Finding("slot_unknown", "p1", found="before"),
        Finding("not_an_image", "p2", "image/*", "application/pdf"),
    )


def test_a_photo_that_needs_a_position_has_a_fix_of_its_own() -> None:
    slot = PhotoSlot(slot="after", prompt="?", position_required=True)
    assert judge_photos(slot, make_photo("p1"), fixes={"p1": Fix(**FIX)}) == ()
    found = judge_photos(slot, make_photo("p1"), fixes={"p2": Fix(**FIX)})
    assert found == (Finding("photo_without_position", "p1"),)


@pytest.mark.parametrize(
    ("captured_at", "codes"),
    [
        ("2026-03-01T08:59:00Z", []),
        ("2026-03-01T09:59:00+01:00", []),
        ("2026-03-01T08:58:59.999Z", ["photo_too_old"]),
        ("2026-03-01T09:30:00Z", []),
        (None, ["photo_without_time"]),
    ],
)
def test_a_photo_may_be_as_old_as_the_limit_at_submission_and_no_older(
    captured_at: str | None, codes: list[str]
) -> None:
    slot = PhotoSlot(slot="after", prompt="?", max_age_seconds=60)
    photo = make_photo("p1", captured_at=captured_at)
    found = judge_photos(slot, photo, submitted_at=SUBMITTED_AT)
    assert [finding.code for finding in found] == codes


def test_age_is_not_judged_before_there_is_a_submission() -> None:
    slot = PhotoSlot(slot="after", prompt="?", max_age_seconds=60)
    assert judge_photos(slot, make_photo("p1", captured_at=None)) == ()


SIGNED = ProofPolicy(signature=("worker", "customer"))
NAMES = {"sig-worker": "Ann", "sig-customer": "Bob"}
BY_CUSTOMER = make_signature("sig-customer", signer="customer")
REFUSED = make_signature(
    "sig-customer", signer="customer", refused=True, hash=None, size=None, media_type=None
)


def test_everybody_who_must_sign_signs_under_a_name() -> None:
    by_worker = make_signature("sig-worker")
    assert judge_people(SIGNED, NAMES, by_worker, BY_CUSTOMER) == []
    assert judge_people(SIGNED, NAMES, by_worker) == [Finding("signature_missing", "customer")]
    nameless = NAMES | {"sig-worker": " "}
    found = judge_people(SIGNED, nameless, by_worker, BY_CUSTOMER)
    assert found == [Finding("name_missing", "sig-worker")]


def test_a_recorded_refusal_to_sign_is_an_answer_and_needs_no_name() -> None:
    assert judge_people(SIGNED, {"sig-worker": "Ann"}, make_signature("sig-worker"), REFUSED) == []


def test_where_nobody_must_sign_no_signature_is_missed() -> None:
    assert judge_people(ProofPolicy(), {}, REFUSED) == []


CONSENT = ProofPolicy(consent=ConsentText("2026-01", "I agree."))
AGREED = ConsentItem(item_id="consent", text_version="2026-01")


def test_consent_is_given_by_name_to_exactly_the_text_asked_for() -> None:
    older = ConsentItem(item_id="consent", text_version="2025-12")
    names = {"consent": "Bob"}
    assert judge_people(CONSENT, names, AGREED) == []
    assert judge_people(CONSENT, {}, AGREED) == [Finding("name_missing", "consent")]
    assert judge_people(CONSENT, names) == [Finding("consent_missing", "consent", "2026-01")]
    differs = Finding("consent_differs", "consent", "2026-01", "2025-12")
    assert judge_people(CONSENT, names, older) == [differs]


def place(metres: int, accuracy_m: int | None = 0, **changes: Any) -> tuple[Any, ...]:
    """A photo taken so many metres north of the site."""
    policy = ProofPolicy(geofence_m=200, **changes)
    moved = {"lat_e7": SITE["lat_e7"] + metres * METRE_E7, "accuracy_m": accuracy_m}
    facts = Facts(fixes={"p1": Fix(**(FIX | moved))}, site=SitePosition(**SITE))
    return policy, make_manifest(items=(make_photo("p1"),)), facts


def outside(*scene: Any) -> tuple[list[str], list[str]]:
    """Return the codes of what blocks and of what is only said."""
    found, said = evaluate(*scene), advise(*scene)
    return (
        [finding.code for finding in found if finding.code == "outside_fence"],
        [finding.code for finding in said],
    )


def test_a_fence_is_advice_unless_it_is_enforced() -> None:
    assert outside(*place(250)) == ([], ["outside_fence"])
    assert outside(*place(250, geofence_enforce=True)) == (["outside_fence"], [])
    assert outside(*place(150, geofence_enforce=True)) == ([], [])


def test_the_accuracy_of_a_fix_counts_for_the_worker() -> None:
    assert outside(*place(250, accuracy_m=60)) == ([], [])
    assert outside(*place(250, accuracy_m=40)) == ([], ["outside_fence"])
    assert outside(*place(250, accuracy_m=None)) == ([], ["outside_fence"])


def test_no_fence_is_judged_without_a_fix_or_without_coordinates_of_the_site() -> None:
    policy, manifest, facts = place(5000, geofence_enforce=True)
    for lacking in (
        Facts(fixes=facts.fixes, site=None),
        Facts(fixes=facts.fixes, site=SitePosition(mappls_pin="3F45CB")),
        Facts(fixes={}, site=facts.site),
    ):
        assert outside(policy, manifest, lacking) == ([], [])


def test_distances_are_great_circles_in_metres() -> None:
    assert distance_m(0, 0, 0, 0) == 0
    assert distance_m(0, 0, 10_000_000, 0) == pytest.approx(111_195, abs=1)
    assert distance_m(0, 1_799_999_999, 0, -1_799_999_999) < 1
    assert distance_m(0, 0, 0, 1_800_000_000) == pytest.approx(20_015_115, abs=1)


def test_every_file_named_is_held_and_verified() -> None:
    facts = make_facts(blobs={PHOTO: Blob(verified=False)})
    assert evaluate(make_policy(), make_manifest(), facts) == (
        Finding("file_missing", PHOTO),
        Finding("file_missing", DRAWING),
    )


def test_a_device_that_has_uploaded_nothing_yet_misses_no_file() -> None:
    assert evaluate(make_policy(), make_manifest(), make_facts(blobs=None)) == ()


def test_a_file_named_twice_is_missed_once() -> None:
    items = (make_photo("p1", hash=OTHER_FILE), make_photo("p2", hash=OTHER_FILE))
    facts = Facts(blobs={})
    found = evaluate(ProofPolicy(photos=(AFTER,)), make_manifest(items=items), facts)
    assert [finding.about for finding in found] == [OTHER_FILE]


def test_a_file_of_another_size_than_the_manifest_says_is_found() -> None:
    held = {PHOTO: Blob(verified=True, size=161713), DRAWING: Blob(verified=True, size=2211)}
    found = evaluate(make_policy(), make_manifest(), make_facts(blobs=held))
    assert found == (Finding("size_differs", "sig-worker", "2211 bytes", "2210 bytes"),)


def test_a_file_of_unknown_size_is_taken_for_what_the_manifest_says() -> None:
    held = {PHOTO: Blob(verified=True, size=None), DRAWING: Blob(verified=True, size=2210)}
    assert evaluate(make_policy(), make_manifest(), make_facts(blobs=held)) == ()


def test_findings_come_in_the_order_of_the_policy() -> None:
    facts = make_facts(personal=ManifestPersonal(), blobs={}, policy_version="0a" * 32)
    found = evaluate(make_policy(), make_manifest(items=()), facts)
    assert [finding.code for finding in found] == [
        "policy_differs",
        "answer_missing",
        "answer_missing",
        "photos_missing",
        "signature_missing",
        "consent_missing",
    ]


def test_no_finding_tells_what_somebody_answered() -> None:
    secret = "a personal answer"
    items = (CONFIRM, NUMBER, CHOICE, DAY, TEXT, CODE)
    for item in items:
        facts = Facts(personal=ManifestPersonal(answers={"x": secret}))
        manifest = make_manifest(items=(AnswerItem(item_id="x"),))
        found = evaluate(ProofPolicy(checklist=(item,)), manifest, facts)
        assert found
        assert secret not in repr(found)


@given(st.text(max_size=45) | st.from_regex(r"-?[0-9]{0,20}\.?[0-9]{0,20}\n?", fullmatch=True))
def test_a_decimal_is_plain_digits_at_most_eighteen_either_side(text: str) -> None:
    sign, _, rest = text.rpartition("-")
    whole, point, part = rest.partition(".")

    def is_run(digits: str) -> bool:
        return 1 <= len(digits) <= 18 and all(digit in "0123456789" for digit in digits)

    good = sign == "" and text.count("-") <= 1 and is_run(whole)
    assert is_decimal(text) == (good and (is_run(part) if point else True))
    if is_decimal(text):
        Decimal(text)


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**17), max_value=10**17))
def test_a_number_in_plain_notation_with_few_digits_is_a_decimal(number: Decimal) -> None:
    try:
        plain = f"{number:.18f}"
    except InvalidOperation:
        return
    assert is_decimal(plain)
