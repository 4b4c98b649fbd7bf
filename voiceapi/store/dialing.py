"""The queries of the dialer: who is due, who is being called, what was decided. Each of them uses an index.

Those of every call are written as SQL: Peewee takes longer to build a statement than SQLite to execute it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from peewee import Value, fn

from . import base, counts
from .campaigns import FINAL, LEASE, LEAST_LEASE, OPEN, Campaign, Contact, Decision, DoNotCall
from .database import execute
from .fields import now
from .indexes import one_of
from .paging import records, window
from .runs import COUNTS


def due(campaign: int, moment: datetime, limit: int) -> list[Contact]:
    """The contacts that are due at `moment`: retries first, by time, then the others by time and row."""
    found: list[Contact] = []
    rest = "WHERE campaign_id = ? AND state = ? AND next_attempt_at <= ? ORDER BY next_attempt_at, row LIMIT ?"
    by = Contact.next_attempt_at.db_value(moment)
    for state in ("retry", "queued"):
        if len(found) < limit:
            found.extend(base.select(Contact, rest, campaign, state, by, limit - len(found)))
    return found


def due_after(campaign: int, moment: datetime) -> datetime | None:
    """When the next contact becomes due after `moment`; None when there is none."""
    statement = "SELECT min(next_attempt_at) FROM contact WHERE campaign_id = ? AND state = ? AND next_attempt_at > ?"
    after = Contact.next_attempt_at.db_value(moment)
    times = [_first(statement, campaign, state, after) for state in ("retry", "queued")]
    return Contact.next_attempt_at.python_value(min((time for time in times if time is not None), default=None))


def is_open(campaign: int) -> bool:
    """Whether any contact is still to be called, or being called."""
    # In the order of an index: PostgreSQL might look through the table, if it takes the state for a frequent one.
    statement = "SELECT 1 FROM contact WHERE campaign_id = ? AND state = ? ORDER BY next_attempt_at LIMIT 1"
    return any(_first(statement, campaign, state) for state in OPEN)


# CROSS JOIN, as below: the few contacts being called first, then the run of each.
DIALING = f"""SELECT count(*) FROM contact CROSS JOIN run
WHERE contact.campaign_id = ? AND contact.state = 'dialing' AND run.id = contact.run_id
  AND (run.deadline_at IS NULL OR {COUNTS})
"""


def dialing(campaign: int, moment: datetime | None = None) -> int:
    """How many contacts are being called whose claims or calls count towards limits at `moment`, or now."""
    return int(_first(DIALING, campaign, Contact.lease_until.db_value(moment or now())))


# CROSS JOIN, because SQLite keeps the order of its tables: the few leased contacts first, then the run of each.
CLAIMED = """SELECT count(*) FROM contact CROSS JOIN run
WHERE contact.lease_until IS NOT NULL AND run.id = contact.run_id
  AND run.organization_id = ? AND run.state = 'prepared'
"""


def claimed(organization: int) -> int:
    """The number of the organization's claimed contacts whose run isn't a call in progress yet."""
    return int(_first(CLAIMED, organization))


def lapsed(moment: datetime, latest: datetime) -> list[Contact]:
    """The contacts whose lease expired before `moment`, whether their calls were placed or not.

    :param latest: a lease until later than this was given while the clock was ahead, and has expired, too.
    """
    return list(Contact.select().where((Contact.lease_until < moment) | (Contact.lease_until > latest)))


def end_leases_of_placed(moment: datetime, latest: datetime) -> None:
    """End the leases, lapsed as `lapsed` says, of the contacts whose call was placed: they wait for its end."""
    execute(
        "UPDATE contact SET lease_until = NULL WHERE (lease_until < ? OR lease_until > ?) AND NOT EXISTS "
        "(SELECT 1 FROM run WHERE run.id = contact.run_id AND run.state = 'prepared')",
        *(Contact.lease_until.db_value(each) for each in (moment, latest)),
    )


def recall_postponed(
    organization: int, moment: datetime, *, campaign: int | None = None, number: str | None = None
) -> None:
    """Make the organization's contacts due at `moment` that were due before and postponed.

    The latest decision about such a contact is about no call.

    :param campaign: only those of this campaign.
    :param number: only those with this number.
    """
    whose, values = "campaign_id IN (SELECT id FROM campaign WHERE organization_id = ?)", [organization]
    if campaign is not None:
        whose, values = "campaign_id = ?", [campaign]
    numbers = [] if number is None else [number]
    if numbers:
        whose += f" AND {one_of('phone_number', numbers)}"
    at = Contact.next_attempt_at.db_value(moment)
    execute(
        f"UPDATE contact SET next_attempt_at = ? WHERE {whose} "
        "AND state IN ('queued', 'retry') AND next_attempt_at > ? "
        "AND coalesce((SELECT run_id FROM decision WHERE contact_id = contact.id ORDER BY id DESC LIMIT 1), 0) = 0",
        *(at, *values, *numbers, at),
    )


# A list of numbers is stored by one statement for so many, which takes a tenth of the time of one for each: meanwhile
# nobody else writes. Some builds of SQLite take 999 values at most.
COLUMNS, ROWS = "organization_id, phone_number, reason, created_at", 240


_SIP = re.compile(r"sips?:(?:([^@]*)@)?(\[[^\]]*\]|[^:;?]*)", re.IGNORECASE)
_TELEPHONE = re.compile(r"(?:\+|00)([0-9]{8,15})")
# What may stand in the user of a SIP address as it is; everything else is percent-encoded.
_USER = "-_.!~*'()&=+$,;/"


def listed_form(address: str) -> str:
    """The form of an address that decides whether it is on the do-not-call list.

    A telephone number stays as it is. Of a SIP address, who it reaches counts: sip:user@host in lower case, with either
    scheme, any port, parameters, password or percent-encoding, with or without the dot that ends the host; one whose
    user is a telephone number with + or 00 is that number.
    """
    found = _SIP.match(address)
    if found is None:
        return address
    host = found[2].lower().rstrip(".")
    if host.startswith("["):
        host = _ipv6(host)
    if found[1] is None:
        return f"sip:{host}"
    user = unquote_to_bytes(found[1].partition(":")[0]).lower()
    telephone = _TELEPHONE.fullmatch(re.sub(r"[-.()]", "", user.decode("latin-1").partition(";")[0]))
    return f"+{telephone[1]}" if telephone else f"sip:{quote(user, safe=_USER)}@{host}"


def _ipv6(host: str) -> str:
    try:
        return f"[{ipaddress.IPv6Address(host.strip('[]'))}]"
    except ValueError:
        return host


def not_to_call(organization: int, numbers: Iterable[str]) -> set[str]:
    """Which of these numbers are on the do-not-call list."""
    asked = {number: listed_form(number) for number in numbers}
    if not asked:
        return set()
    forms = sorted(set(asked.values()))
    statement = f"SELECT phone_number FROM do_not_call WHERE organization_id = ? AND {one_of('phone_number', forms)}"
    found = {form for (form,) in execute(statement, organization, *forms).fetchall()}
    return {number for number, form in asked.items() if form in found}


def page_of_do_not_call(organization: int, number: int, limit: int) -> tuple[list[DoNotCall], int]:
    """A page of the do-not-call list, the newest first, and how many numbers are on it."""
    total = int(_first("SELECT count(*) FROM do_not_call WHERE organization_id = ?", organization))
    rows = window(total, number, limit)
    return records(DoNotCall, "organization_id = ?", (organization,), ("id",), rows, descending=True), total


def remove_from_do_not_call(organization: int, number: str) -> bool:
    """Take a number off the do-not-call list; False when it wasn't on it."""
    form = listed_form(number)
    statement = f"DELETE FROM do_not_call WHERE organization_id = ? AND {one_of('phone_number', [form])}"
    return bool(execute(statement, organization, form).rowcount)


def all_not_to_call(organization: int) -> set[str]:
    """All numbers of the do-not-call list, in the form of `listed_form`."""
    return {entry.phone_number for entry in DoNotCall.select().where(DoNotCall.organization == organization)}


def add_to_do_not_call(organization: int, numbers: Mapping[str, str | None]) -> int:
    """Put numbers, each with its reason, on the do-not-call list; returns how many weren't there yet."""
    reasons: dict[str, str | None] = {}
    for number, reason in numbers.items():
        reasons.setdefault(listed_form(number), reason)
    at, entries, new = DoNotCall.created_at.db_value(now()), list(reasons.items()), 0
    for first in range(0, len(entries), ROWS):
        rows = entries[first : first + ROWS]
        marks = ", ".join(["(?, ?, ?, ?)"] * len(rows))
        statement = f"INSERT INTO do_not_call ({COLUMNS}) VALUES {marks} ON CONFLICT DO NOTHING"
        values = (value for number, reason in rows for value in (organization, number, reason, at))
        new += execute(statement, *values).rowcount
    return new


# When a contact was dialed, unless that attempt was released, because then nobody was called. OFFSET: without it
# PostgreSQL may look for all attempts that were released at once.
DIALED = """decision.code = 'dialed' AND NOT EXISTS (
  SELECT 1 FROM decision AS later
  WHERE later.contact_id = decision.contact_id AND later.run_id = decision.run_id AND later.code = 'released'
  LIMIT 1 OFFSET 0)"""
# CROSS JOIN: the few numbers first, then what was decided about each of them.
DIALED_SINCE = f"""SELECT contact.phone_number, decision.at FROM contact CROSS JOIN decision
WHERE {{numbers}} AND decision.contact_id = contact.id AND decision.at > ?
  AND decision.campaign_id IN (SELECT id FROM campaign WHERE organization_id = ?) AND {DIALED}
ORDER BY decision.at"""
# CROSS JOIN: what was dialed within that time first, then the contact of each.
ALL_DIALED = f"""SELECT contact.phone_number, decision.at FROM campaign CROSS JOIN decision CROSS JOIN contact
WHERE campaign.organization_id = ? AND decision.campaign_id = campaign.id AND decision.at > ? AND decision.at <= ?
  AND contact.id = decision.contact_id AND {DIALED}
ORDER BY decision.at"""
LAST_DIALED = f"""SELECT max((
  SELECT at FROM decision WHERE campaign_id = campaign.id AND {DIALED} ORDER BY at DESC LIMIT 1))
FROM campaign WHERE organization_id = ?"""


def dialed_since(organization: int, numbers: Iterable[str], since: datetime) -> dict[str, tuple[datetime, ...]]:
    """When the organization's campaigns dialed each of these numbers, oldest first.

    An attempt that was released doesn't count.
    """
    asked = list(numbers)
    if not asked:
        return {}
    statement = DIALED_SINCE.format(numbers=one_of("contact.phone_number", asked))
    return _by_number(execute(statement, *asked, Decision.at.db_value(since), organization))


def all_dialed(organization: int, since: datetime, until: datetime) -> dict[str, tuple[datetime, ...]]:
    """When the organization's campaigns dialed which numbers, after `since` and up to `until`, as `dialed_since`."""
    return _by_number(execute(ALL_DIALED, organization, Decision.at.db_value(since), Decision.at.db_value(until)))


def last_dialed_at(organization: int) -> datetime | None:
    """When the organization's campaigns last dialed, as `dialed_since`; None if they never did."""
    return Decision.at.python_value(_first(LAST_DIALED, organization))


def _by_number(dialed: Iterable[tuple[str, int]]) -> dict[str, tuple[datetime, ...]]:
    found: dict[str, list[Any]] = {}
    for number, at in dialed:
        found.setdefault(number, []).append(Decision.at.python_value(at))
    return {number: tuple(times) for number, times in found.items()}


def ended_since(campaign: int, since: datetime, outcomes: Sequence[str], failures: Sequence[str]) -> tuple[int, int]:
    """How many calls of the campaign ended after `since` in one of `outcomes`, and how many in one of `failures`."""
    counts = counted(campaign, outcomes, since)
    return sum(counts.values()), sum(counts.get(code, 0) for code in failures)


def counted(campaign: int, codes: Sequence[str], since: datetime | None = None) -> dict[str, int]:
    """The number of decisions with each of these codes; a code without any is missing."""
    rows: Any = Decision.select(Decision.code, fn.count(Decision.id)).where(
        Decision.campaign == campaign, Decision.code.in_(codes)
    )
    if since is not None:
        rows = rows.where(Decision.at > since)
    return dict(rows.group_by(Decision.code).tuples())


def decide(contact: Contact, code: str, reason: str, moment: datetime, run: int | None = None) -> None:
    """Add an entry to a contact's history."""
    decide_all([(contact, code, reason, moment, run)])


def decide_all(decisions: Iterable[tuple[Contact, str, str, datetime, int | None]]) -> None:
    """Add entries to the histories of contacts, each with the arguments of `decide`."""
    rows = (
        {
            "contact": contact.id,
            "campaign": contact.campaign_id,
            "at": at,
            "code": code,
            "reason": reason,
            "run_id": run,
        }
        for contact, code, reason, at, run in decisions
    )
    base.insert_all(Decision, rows)


def add_to(campaign: int, **counts: int) -> None:
    """Add to counters of a campaign, safe with concurrent changes."""
    changed = {name: count for name, count in counts.items() if count}
    if changed:
        changes = ", ".join(f"{name} = {name} + ?" for name in changed)
        execute(f"UPDATE campaign SET {changes} WHERE id = ?", *changed.values(), campaign)


def _first(sql: str, *values: Any) -> Any:
    """The first value of the first row, None without one."""
    row = execute(sql, *values).fetchone()
    return None if row is None else row[0]


ACTIVE = "FROM campaign WHERE state IN ('syncing', 'running')"


def active() -> list[tuple[int, int, str]]:
    """The campaigns to import or dial, as id, organization and state.

    First those that never dialed, then by who dialed longest ago: so of two campaigns that wait for one free call, each
    gets every second one.
    """
    found = execute(f"SELECT coalesce(dialed_at, 0), id, organization_id, state {ACTIVE}").fetchall()
    return [(id, organization, state) for _, id, organization, state in sorted(found)]


# The running campaigns whose lease is to be renewed: it has run low, or was given while the clock was ahead.
UNSIGNED = f"""SELECT id {ACTIVE} AND state = 'running'
  AND (source_lease_until IS NULL OR source_lease_until < ? OR source_lease_until > ?)"""


def is_unsigned(moment: datetime) -> bool:
    """Whether the lease of a running campaign is to be renewed."""
    return _first(UNSIGNED, *_bounds(moment)) is not None


def sign(moment: datetime) -> None:
    """Renew the leases of the running campaigns: somebody dials. One that another transaction changes is left out."""
    execute(
        f"UPDATE campaign SET source_lease_until = ? WHERE id IN ({UNSIGNED}{base.skipping_locked()})",
        *(Campaign.source_lease_until.db_value(moment + LEASE), *_bounds(moment)),
    )


def _bounds(moment: datetime) -> tuple[Any, ...]:
    return tuple(Campaign.source_lease_until.db_value(moment + ahead) for ahead in (LEAST_LEASE, 2 * LEASE))


def note_dialed(campaign: int, moment: datetime) -> None:
    """Put a campaign that dials at `moment` behind all others, also if the clock was set back since they dialed."""
    latest = int(_first(f"SELECT max(dialed_at) {ACTIVE}") or 0)
    at = max(Campaign.dialed_at.db_value(moment) or 0, latest + 1)
    execute("UPDATE campaign SET dialed_at = ? WHERE id = ?", at, campaign)


def rows_read(campaign: int) -> int:
    """The number of the last imported row of the campaign's list, 0 before the first."""
    last: int | None = Contact.select(fn.max(Contact.row)).where(Contact.campaign == campaign).scalar()
    return last or 0


def all_contacts(campaign: int) -> list[Contact]:
    """Every contact of a campaign."""
    return list(Contact.select().where(Contact.campaign == campaign))


def note_skipped(campaign: int, reasons: Mapping[int, str], moment: datetime) -> None:
    """Add to the histories of the contacts of these rows that they were skipped, each with its reason."""
    if not reasons:
        return
    owned = (Contact.campaign == campaign, Contact.row.in_(list(reasons)))
    contacts: Any = Contact.select(Contact.id, Contact.row).where(*owned).order_by(Contact.row)
    fixed = {"campaign": campaign, "at": moment, "code": "row_skipped"}
    base.insert_all(Decision, [{**fixed, "contact": id, "reason": reasons[row]} for id, row in contacts.tuples()])


def states(campaign: int) -> dict[str, int]:
    """How many contacts are in each state."""
    found = counts.by_state(counts.CONTACTS, campaign_id=campaign)
    return {state: found.get(state, 0) for state in (*OPEN, *FINAL)}


def count_unreached(campaign: int, outcomes: Sequence[str]) -> int:
    """How many contacts of a campaign failed, with one of these outcomes of their last call."""
    return int(_unreached(campaign, outcomes).count())


def _unreached(campaign: int, outcomes: Sequence[str]) -> Any:
    """The contacts that failed, with one of these outcomes of their last call."""
    latest = (Decision.contact == Contact.id) & (Decision.run_id == Contact.run_id) & Decision.code.in_(outcomes)
    failed = Contact.select(Contact.row, Contact.phone_number, Contact.variables).join(Decision, on=latest)
    return failed.where(Contact.campaign == campaign, Contact.state == "failed")


def copy(campaign: int, outcomes: Sequence[str], to: int, moment: datetime) -> None:
    """Queue the contacts that `count_unreached` counts in the campaign `to`, due at `moment`."""
    columns = (Contact.row, Contact.phone_number, Contact.variables)
    fixed: dict[Any, Any] = {
        Contact.campaign: to,
        Contact.state: "queued",
        Contact.attempts: 0,
        Contact.next_attempt_at: moment,
    }
    same = (Value(field.db_value(value)) for field, value in fixed.items())
    chosen = _unreached(campaign, outcomes).select(*columns, *same)
    Contact.insert_from(chosen, [*columns, *fixed]).execute()


def page(campaign: int, state: str | None, number: int, limit: int) -> tuple[list[Contact], int]:
    """A page of contacts and their total number: all by row, or those of a state by when they are due."""
    counted = states(campaign)
    if state is None:
        total = sum(counted.values())
        rows = window(total, number, limit)
        return records(Contact, "campaign_id = ?", (campaign,), ("row",), rows, descending=False), total
    total = counted[state]
    given, order = ("campaign_id = ? AND state = ?", (campaign, state)), ("next_attempt_at", "row")
    return records(Contact, *given, order, window(total, number, limit), descending=False), total


def columns(campaign: int) -> list[str]:
    """The columns of a campaign's list; none while it isn't read. A row that can't be read has no variables."""
    found = base.select(Contact, "WHERE campaign_id = ? AND variables <> '{}' ORDER BY row LIMIT 1", campaign)
    return list(found[0].variables) if found else []


def contacts_after(campaign: int, row: int, state: str | None, limit: int) -> list[Contact]:
    """The next contacts of a campaign after a row of its list, in order; those of one state if given."""
    where, values = "campaign_id = ? AND row > ?", (campaign, row)
    if state is not None:
        return base.select(Contact, f"WHERE {where} AND state = ? ORDER BY row LIMIT ?", *values, state, limit)
    return base.select(Contact, f"WHERE {where} ORDER BY row LIMIT ?", *values, limit)


def decisions(contacts: Sequence[int]) -> dict[int, list[Decision]]:
    """The decisions about each of these contacts, in order, by contact id."""
    found: dict[int, list[Decision]] = {}
    if not contacts:
        return found
    for decision in base.select(Decision, f"WHERE contact_id IN ({base.marks(contacts)}) ORDER BY id", *contacts):
        found.setdefault(decision.contact_id, []).append(decision)
    return found
