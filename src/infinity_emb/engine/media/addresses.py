"""Which addresses belong to the public internet, by IANA's registries of special-purpose addresses."""

from __future__ import annotations

import ipaddress

from infinity_emb.engine.media.refusal import Refusal

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Addresses at which clouds tell a machine its credentials. The first is in public space: no range below holds it.
_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in ("168.63.129.16", "169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "fd00:ec2::254")
)

# The first range that holds an address names it. IPv6 outside 2000::/3 is not public whatever it is for.
_RANGES = tuple(
    (ipaddress.ip_network(text), refusal)
    for text, refusal in (
        ("127.0.0.0/8", Refusal.LOOPBACK),
        ("0.0.0.0/8", Refusal.LOOPBACK),  # "this host"; systems connect to themselves
        ("10.0.0.0/8", Refusal.PRIVATE),
        ("172.16.0.0/12", Refusal.PRIVATE),
        ("192.168.0.0/16", Refusal.PRIVATE),
        ("169.254.0.0/16", Refusal.LINK_LOCAL),
        ("100.64.0.0/10", Refusal.SHARED),
        ("224.0.0.0/4", Refusal.MULTICAST),
        ("192.0.0.0/24", Refusal.RESERVED),
        ("192.0.2.0/24", Refusal.RESERVED),
        ("192.31.196.0/24", Refusal.RESERVED),
        ("192.52.193.0/24", Refusal.RESERVED),
        ("192.88.99.0/24", Refusal.EMBEDDED),  # relays of 6to4
        ("192.175.48.0/24", Refusal.RESERVED),
        ("198.18.0.0/15", Refusal.RESERVED),
        ("198.51.100.0/24", Refusal.RESERVED),
        ("203.0.113.0/24", Refusal.RESERVED),
        ("240.0.0.0/4", Refusal.RESERVED),
        ("::1/128", Refusal.LOOPBACK),
        ("::/128", Refusal.LOOPBACK),
        ("::ffff:0:0/96", Refusal.EMBEDDED),  # IPv4-mapped
        ("::ffff:0:0:0/96", Refusal.EMBEDDED),  # IPv4-translated
        ("::/96", Refusal.EMBEDDED),  # IPv4-compatible
        ("64:ff9b::/96", Refusal.EMBEDDED),  # NAT64
        ("64:ff9b:1::/48", Refusal.EMBEDDED),  # NAT64 of one network
        ("2002::/16", Refusal.EMBEDDED),  # 6to4
        ("2001::/32", Refusal.EMBEDDED),  # Teredo
        ("2001::/23", Refusal.RESERVED),
        ("2001:db8::/32", Refusal.RESERVED),
        ("2620:4f:8000::/48", Refusal.RESERVED),
        ("3fff::/20", Refusal.RESERVED),
        ("fc00::/7", Refusal.PRIVATE),
        ("fec0::/10", Refusal.PRIVATE),
        ("fe80::/10", Refusal.LINK_LOCAL),
        ("ff00::/8", Refusal.MULTICAST),
    )
)
_PUBLIC_IPV6 = ipaddress.ip_network("2000::/3")


def refusal_of(address: Address) -> Refusal | None:
    """Why an address is not public; None if it is."""
    if address in _METADATA:
        return Refusal.METADATA
    for network, refusal in _RANGES:
        if address.version == network.version and address in network:
            return refusal
    if isinstance(address, ipaddress.IPv6Address) and (address not in _PUBLIC_IPV6 or address.scope_id is not None):
        return Refusal.RESERVED
    # The tables of the standard library know some ranges by another name; whatever they add is refused too.
    return None if address.is_global else Refusal.RESERVED
