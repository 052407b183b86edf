"""Whatever the device can fail with has words for people: what is safe, and what to do."""

import importlib
import pkgutil
from collections.abc import Iterator

import workmate_client
from workmate_client.errors import DeviceError
from workmate_client.service.faults import FAULTS, fault_of
from workmate_shared.kernel.catalogue import CATALOGUE


def kinds(root: type[DeviceError]) -> Iterator[type[DeviceError]]:
    yield root
    for kind in root.__subclasses__():
        yield from kinds(kind)


def test_every_error_with_a_code_of_its_own_has_words() -> None:
    for package in ("journal", "replica", "service", "sync", "commands"):
        found = pkgutil.iter_modules([f"{workmate_client.__path__[0]}/{package}"])
        for module in found:
            importlib.import_module(f"workmate_client.{package}.{module.name}")
    own = {kind.code for kind in kinds(DeviceError) if "code" in vars(kind)}
    assert len(own) > 20
    assert own - {"device_error"} <= set(FAULTS) | set(CATALOGUE)


def test_the_devices_words_are_whole_and_the_catalogues_serve_for_the_rest() -> None:
    for fault in FAULTS.values():
        assert fault.title
        assert fault.safe.endswith(".")
        assert fault.todo
    served = fault_of("version_conflict")
    assert served is not None
    assert served.title == CATALOGUE["version_conflict"].title
    assert fault_of("from_the_future") is None
