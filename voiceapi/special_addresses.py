"""The addresses and ports that URLs of users may not lead to: IANA's special-purpose blocks, metadata services, ports.

The tables are our own, because the `ipaddress` module of each Python release knows another part of the registries.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

# IANA's IPv4 special-purpose registry, also the blocks that are reachable, and multicast.
IPV4_BLOCKS = {
    "0.0.0.0/8": "this network",
    "10.0.0.0/8": "private use",
    "100.64.0.0/10": "shared address space of carriers",
    "127.0.0.0/8": "loopback",
    "169.254.0.0/16": "link local",
    "172.16.0.0/12": "private use",
    "192.0.0.0/24": "IETF protocol assignments",
    "192.0.2.0/24": "documentation",
    "192.31.196.0/24": "AS112",
    "192.52.193.0/24": "automatic multicast tunneling",
    "192.88.99.0/24": "6to4 relays",
    "192.168.0.0/16": "private use",
    "192.175.48.0/24": "direct delegation of AS112",
    "198.18.0.0/15": "benchmarking",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved, and limited broadcast",
}
# IANA's IPv6 special-purpose registry, what else is reserved outside 2000::/3, and multicast.
IPV6_BLOCKS = {
    "::1/128": "loopback",
    "::/128": "unspecified",
    "::/96": "IPv4-compatible",
    "::ffff:0:0:0/96": "IPv4-translated",
    "64:ff9b:1::/48": "translation of IPv4, local use",
    "100::/64": "discard only",
    "100:0:0:1::/64": "dummy",
    "2001::/32": "Teredo",
    "2001:1::1/128": "port control protocol anycast",
    "2001:1::2/128": "TURN anycast",
    "2001:1::3/128": "DNS service discovery anycast",
    "2001:2::/48": "benchmarking",
    "2001:3::/32": "automatic multicast tunneling",
    "2001:4:112::/48": "AS112",
    "2001:10::/28": "ORCHID",
    "2001:20::/28": "ORCHIDv2",
    "2001:30::/28": "drone remote identification",
    "2001::/23": "IETF protocol assignments",
    "2001:db8::/32": "documentation",
    "2002::/16": "6to4",
    "2620:4f:8000::/48": "direct delegation of AS112",
    "3fff::/20": "documentation",
    "5f00::/16": "segment routing",
    "fc00::/7": "unique local",
    "fe80::/10": "link local",
    "fec0::/10": "site local",
    "ff00::/8": "multicast",
}
# Where clouds answer their machines, often with credentials. Only Azure's is outside the blocks above.
METADATA = {
    "100.100.100.200/32": "Alibaba Cloud",
    "168.63.129.16/32": "Azure",
    "169.254.0.23/32": "Tencent Cloud",
    "169.254.42.42/32": "Scaleway",
    "169.254.169.254/32": "most clouds",
    "169.254.170.2/32": "tasks of Amazon ECS",
    "169.254.170.23/32": "pods of Amazon EKS",
    "192.0.0.192/32": "Oracle Cloud",
    "fd00:42::42/128": "Scaleway",
    "fd00:ec2::23/128": "pods of Amazon EKS",
    "fd00:ec2::254/128": "Amazon EC2",
    "fd20:ce::254/128": "Google Cloud",
    "fe80::a9fe:a9fe/128": "OpenStack",
}
# The networks whose addresses are those of IPv4 hosts: IPv4-mapped ones, and those of translators to IPv4 (NAT64).
_EMBEDDING_IPV4 = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
# All that has been allocated for the public internet; the rest of IPv6 is reserved.
_GLOBAL_UNICAST = IPv6Network("2000::/3")

_BLOCKS = (*IPV4_BLOCKS, *IPV6_BLOCKS, *METADATA)
_IPV4 = tuple(IPv4Network(block) for block in _BLOCKS if ":" not in block)
_IPV6 = tuple(IPv6Network(block) for block in _BLOCKS if ":" in block)

# Ports of other protocols, whose servers might take an HTTP request for one of theirs: the Fetch standard's bad ports.
# fmt: off
OTHER_PROTOCOLS = frozenset(
    {
        1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
        109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515,
        526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049,
        3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
    }
)
# fmt: on


def is_special(ip: IPv4Address | IPv6Address) -> bool:
    """True unless the address is one of the public internet; one that embeds an IPv4 address is judged by that."""
    if isinstance(ip, IPv6Address):
        if any(ip in network for network in _EMBEDDING_IPV4):
            return is_special(IPv4Address(int(ip) & 0xFFFFFFFF))
        return ip not in _GLOBAL_UNICAST or any(ip in network for network in _IPV6)
    return any(ip in network for network in _IPV4)
