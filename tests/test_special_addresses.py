"""The addresses that URLs of users may not lead to, address by address."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import given, seed
from hypothesis import strategies as st

from voiceapi.http_client import is_public

# The registries of special-purpose addresses as IANA has them, and multicast.
IPV4_TEXT = """
0.0.0.0/8 0.0.0.0/32 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.0.0/29
192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/32 192.0.0.171/32 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24
192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
255.255.255.255/32
"""
IPV6_TEXT = """
::1/128 ::/128 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32 2001:1::1/128 2001:1::2/128 2001:1::3/128
2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28 2001:20::/28 2001:30::/28 2001:db8::/32 2002::/16
2620:4f:8000::/48 3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8 ::/96
"""
# IPv6 outside 2000::/3 isn't allocated for the public internet.
UNALLOCATED = ["::/3", "4000::/2", "8000::/1"]
METADATA_TEXT = """
169.254.169.254 169.254.169.253 169.254.169.123 169.254.170.2 169.254.170.23 169.254.42.42 169.254.0.23 192.0.0.192
168.63.129.16 100.100.100.200 fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fd00:42::42 fe80::a9fe:a9fe ::ffff:168.63.129.16
64:ff9b::a83f:8110
"""
IPV4, IPV6, METADATA = IPV4_TEXT.split(), IPV6_TEXT.split(), METADATA_TEXT.split()
Range = tuple[int, int]


def ranges(blocks: list[str]) -> list[Range]:
    networks = [ip_network(block) for block in blocks]
    return [(int(each.network_address), int(each.broadcast_address)) for each in networks]


SPECIAL = {4: [*ranges(IPV4), *ranges(["168.63.129.16/32"])], 6: ranges([*IPV6, *UNALLOCATED])}


def is_in(number: int, version: int) -> bool:
    return any(first <= number <= last for first, last in SPECIAL[version])


@pytest.mark.parametrize("block", [*IPV4, *IPV6, *UNALLOCATED])
def test_the_first_and_the_last_address_of_each_block_and_their_neighbours(block: str) -> None:
    version = 6 if ":" in block else 4
    make, highest = (IPv6Address, 2**128) if version == 6 else (IPv4Address, 2**32)
    [(first, last)] = ranges([block])
    # An address of ::/3 that embeds an IPv4 address is judged by that, and the last one of ::/3 doesn't.
    for number in {first, last, (first + last) // 2, first - 1, last + 1}:
        if 0 <= number < highest:
            assert is_public(str(make(number))) is not is_in(number, version), make(number)
    assert not is_public(str(make(first)))
    assert not is_public(str(make(last)))


@pytest.mark.parametrize("address", METADATA)
def test_metadata_services_are_not_public(address: str) -> None:
    assert not is_public(address)


PUBLIC_TEXT = """
1.0.0.0 1.1.1.1 8.8.8.8 93.184.216.34 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 168.63.129.15 168.63.129.17
223.255.255.255 2606:4700::1111 2001:4860:4860::8888 2001:200:: 2a00:1450:4001::1 2620:4f:7fff:: 2620:4f:8001:: 3ffe::
2000:: 64:ff9b::808:808 ::ffff:8.8.8.8 ::ffff:808:808
"""


@pytest.mark.parametrize("address", PUBLIC_TEXT.split())
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)


@seed(4)
@given(st.integers(0, 2**32 - 1))
def test_an_ipv4_address_and_those_that_embed_it_are_judged_alike(number: int) -> None:
    expected = not is_in(number, 4)
    assert is_public(str(IPv4Address(number))) is expected
    for prefix in (0xFFFF << 32, 0x64FF9B << 96):
        assert is_public(str(IPv6Address(prefix | number))) is expected
    # Tunnels that nobody runs any more: 6to4, Teredo, IPv4-compatible addresses, translation for local use.
    others = (0x2002 << 112 | number << 80, 0x20010000 << 96 | number, number, 0x64FF9B0001 << 88 | number)
    assert not any(is_public(str(IPv6Address(other))) for other in others)


@seed(6)
@given(st.integers(0x2 << 124, (0x4 << 124) - 1))
def test_an_ipv6_address_is_public_unless_it_is_in_a_block(number: int) -> None:
    assert is_public(str(IPv6Address(number))) is not is_in(number, 6)


@pytest.mark.parametrize("address", ["fe80::1%eth0", "2606:4700::1111%eth0", "::1%lo"])
def test_an_address_with_a_zone_is_not_public(address: str) -> None:
    assert not is_public(address)
