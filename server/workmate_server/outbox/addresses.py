"""Which network addresses a webhook may be sent to: those of the public internet.

Whoever may name a webhook's target must not reach through the server what only the server can
reach. Refused are loopback, link-local, private and shared ranges, everything else that is not
globally routed (the IANA special-purpose registries), and all forms that carry an IPv4 address
inside an IPv6 one, because the network may unwrap them.
"""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

_WRAPPING = tuple(
    IPv6Network(network)
    for network in (
        "::/96",  # IPv4-compatible
        "::ffff:0:0/96",  # IPv4-mapped
        "64:ff9b::/96",  # NAT64, RFC 6052
        "64:ff9b:1::/48",  # NAT64 for local use, RFC 8215
        "2001::/32",  # Teredo
        "2002::/16",  # 6to4
        "5f00::/16",  # segment routing, RFC 9602
    )
)


def is_public(address: str) -> bool:
    """Whether an IP address in text may be connected to; false for text that is no address."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return _is_global(parsed)


def _is_global(address: IPv4Address | IPv6Address) -> bool:
    if address.is_multicast or not address.is_global:
        return False
    if isinstance(address, IPv6Address):
        return not any(address in network for network in _WRAPPING)
    return True
