// The dry run of a campaign: a form, and what would happen as a chart.

import { api } from "../../app/api.js";
import { barChart } from "../../parts/chart.js";
import { callout, details, facts, field, fieldset, form, input, instant, numberIn, table, words } from "../../parts/components.js";
import { h, show } from "../../parts/dom.js";

const SHARES = [["answered", 55], ["no_answer", 20], ["voicemail", 15], ["busy", 7], ["failed", 3]];
// Why contacts are skipped.
const REASONS = { row_skipped: "by what stands in their rows", do_not_call: "on the do-not-call list" };
const HOUR = 3600 * 1000;
// Longer spans are shown by day.
const MOST_HOURS = 48;

/** The zone in which a campaign's times are shown: that of its hours, else the browser's. */
export const zoneOf = (schedule) => schedule?.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The dry run of a campaign; it begins at once with what is usual. */
export function dryRun(campaign, signal) {
  const number = (value, props) => input({ type: "number", value: String(value), inputmode: "decimal", ...props });
  const now = new Date();
  const local = new Date(now.getTime() - now.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  const start = input({ type: "datetime-local", value: local });
  const days = number(14, { min: "1", max: "366" });
  const seed = number(1, {});
  const shares = SHARES.map(([name, share]) => [name, number(share, { min: "0" })]);
  const shortest = number(30, { min: "0" });
  const longest = number(120, { min: "0" });
  const result = h("div", { class: "result", "aria-live": "polite" });
  const run = async () => {
    const body = {
      starts_at: start.value ? new Date(start.value).toISOString() : null,
      days: numberIn(days) ?? undefined,
      seed: numberIn(seed) ?? undefined,
      outcomes: Object.fromEntries(shares.map(([name, control]) => [name, numberIn(control) ?? 0])),
      talk_seconds: { shortest: numberIn(shortest), longest: numberIn(longest) },
    };
    show(result, h("p", { class: "loading" }, "Running…"));
    try {
      const found = await api.post(`/campaign/${campaign.id}/simulate`, { body, signal });
      show(result, forecast(found, zoneOf(campaign.schedule_config), body.days));
    } catch (error) {
      show(result);
      throw error;
    }
  };
  const fields = form("Run it again", run,
    h("div", { class: "fields" },
      field("Start", start, { name: "starts_at", help: "On this browser's clock. Empty: when the campaign was created." }),
      field("Days, at most", days, { name: "days" })),
    details("Assumptions",
      fieldset("Out of 100 calls",
        h("div", { class: "fields" }, shares.map(([name, control]) => field(words(name), control))),
        h("p", { class: "help" }, "Only their proportions count.")),
      h("div", { class: "fields" },
        field("Shortest conversation, in seconds", shortest, { name: "talk_seconds.shortest" }),
        field("Longest conversation, in seconds", longest, { name: "talk_seconds.longest" }),
        field("Number of the draw", seed, { name: "seed", help: "Another number draws who answers anew; the same one repeats it." }))));
  queueMicrotask(() => fields.requestSubmit());
  return h("div", { class: "page" },
    h("p", { class: "quiet" }, "The whole list on a virtual clock, by the dialer's own rules. Nobody is called, nothing is stored."),
    fields, result);
}

/** When a dry run ends and what comes of it, as facts, warnings, a chart by time, and the rows that aren't called. */
export function forecast(found, zone, days = 14) {
  const left = ["queued", "dialing", "retry"].reduce((total, state) => total + found.contacts[state], 0);
  const counted = (counts) => Object.entries(counts).filter(([, count]) => count).map(([name, count]) => `${count} ${REASONS[name] ?? words(name)}`).join(", ");
  return [
    found.timeline.length ? timeline(found.timeline, zone) : h("p", { class: "empty" }, "Nobody would be called."),
    found.ends_at ? null : callout(`It isn't over: ${left} contacts are left after ${days} days, or after the most calls that a dry run makes.`),
    found.circuit_breaker_trips.length > 0 && callout(
      `It would pause by itself ${found.circuit_breaker_trips.length === 1 ? "once" : `${found.circuit_breaker_trips.length} times`}, first at `,
      instant(found.circuit_breaker_trips[0]), ", because too many calls failed. The dry run goes on as if it was resumed at once."),
    details("What comes of it in numbers", facts([
      ["Calls", `${found.attempts}, ${found.retries} of them to people who were called before`],
      ["Minutes of talk", String(found.minutes)],
      ["At the same time", `at most ${found.peak_concurrency}`],
      ["Ends", found.ends_at ? instant(found.ends_at) : null],
      ["Contacts at the end", counted(found.contacts)],
      ["Calls, answered or not", counted(found.outcomes)],
      ["Why skipped", counted(found.skipped)],
      ["Had to wait", counted(found.postponed)],
    ])),
    found.skipped_contacts.length ? [
      h("h3", {}, "Rows that wouldn't be called"),
      table("Rows that wouldn't be called", [
        ["Row", (row) => String(row.row), { number: true }],
        ["Number", (row) => row.phone_number],
        ["Why", (row) => row.reason],
      ], found.skipped_contacts.slice(0, 100)),
      found.skipped_contacts.length > 100 && callout(`These are the first 100 of at least ${found.skipped_contacts.length}.`),
    ] : null,
  ];
}

/** A day and time in a zone, as in "Mon 30 Nov, 09:00". */
export const dayAndTime = (text, zone) => new Intl.DateTimeFormat(undefined, {
  timeZone: zone, weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit",
}).format(new Date(text));

/** The calls by hour, or by day when there are many hours. */
function timeline(hours, zone) {
  const at = (text) => new Date(text).getTime();
  const [first, last] = [at(hours[0].hour), at(hours.at(-1).hour)];
  const byDay = (last - first) / HOUR >= MOST_HOURS;
  const day = new Intl.DateTimeFormat(undefined, { timeZone: zone, weekday: "short", day: "numeric", month: "short" });
  const hour = new Intl.DateTimeFormat(undefined, { timeZone: zone, weekday: "short", hour: "2-digit", minute: "2-digit" });
  const known = new Map(hours.map((each) => [at(each.hour), each]));
  const bars = new Map();
  for (let time = first; time <= last; time += HOUR) {
    const label = (byDay ? day : hour).format(time);
    const key = byDay ? label : String(time);
    const bar = bars.get(key) ?? { label, values: [0, 0] };
    const found = known.get(time);
    if (found) bar.values = [bar.values[0] + found.answered, bar.values[1] + found.attempts - found.answered];
    bars.set(key, bar);
  }
  const title = `Calls by ${byDay ? "day" : "hour"}, in ${zone}`;
  return [h("h2", {}, title), barChart(title, ["answered", "not answered"], [...bars.values()], { first: byDay ? "Day" : "Hour" })];
}
