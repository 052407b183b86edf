"""Which addresses webhooks may reach."""

import pytest

from workmate_server.outbox.addresses import is_public


@pytest.mark.parametrize("address", ["93.184.216.34", "1.1.1.1", "2606:4700:4700::1111"])
def test_an_address_of_the_public_internet_may_be_reached(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.255.255.254",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "192.0.0.1",
        "192.0.2.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:93.184.216.34",
        "64:ff9b::7f00:1",
        "64:ff9b::5db8:d822",
        "64:ff9b:1::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "fc00::1",
        "fd12:3456::1",
        "fe80::1",
        "fe80::1%eth0",
        "ff02::1",
    ],
)
def test_an_address_that_only_the_server_could_reach_is_refused(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("text", ["", "localhost", "127.1", "0x7f000001", "1.1.1.1.1", "%"])
def test_text_that_is_no_address_is_refused(text: str) -> None:
    assert not is_public(text)
