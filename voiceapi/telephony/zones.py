"""The time zones that a telephone number may be in."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=4096)
def zones_of_number(number: str) -> tuple[str, ...]:
    """IANA names, several where the number doesn't tell more; none for a SIP address or a number of no place.

    :param number: E.164 with its `+`.
    """
    import phonenumbers.timezone  # its tables take memory that a service without calling hours doesn't need

    try:
        zones = phonenumbers.timezone.time_zones_for_number(phonenumbers.parse(number))
    except phonenumbers.NumberParseException:
        return ()
    return tuple(zone for zone in zones if zone != phonenumbers.timezone.UNKNOWN_TIMEZONE)
