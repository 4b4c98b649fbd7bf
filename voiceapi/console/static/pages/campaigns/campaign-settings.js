// The settings of a campaign as a form: when to call, how often, how many at a time.

import { button, checkbox, details, field, fieldset, input, numberIn, seconds, select } from "../../parts/components.js";
import { h } from "../../parts/dom.js";

const DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const OWN_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

const time = (value, label) => input({ value, class: "time", placeholder: "09:00", "aria-label": label, maxlength: "5" });
const count = (value, props = {}) => input({ type: "number", value: value ?? "", inputmode: "numeric", step: "1", ...props });

function windows(slots) {
  const rows = h("div", { class: "rows" });
  const add = (day = 0, start = "09:00", end = "17:00") => {
    const row = h("div", { class: "row window" },
      select(DAYS.map((name, index) => [String(index), name]), String(day), { "aria-label": "Day" }),
      time(start, "From"), time(end, "To"),
      button("×", () => {
        row.remove();
        more.focus();
      }, { kind: "small plain", "aria-label": "Remove this window" }));
    rows.append(row);
  };
  const more = button("Add a window", () => add(rows.children.length % 7), { kind: "small" });
  const week = button("Monday to Friday, 9 to 17", () => {
    rows.replaceChildren();
    for (let day = 0; day < 5; day += 1) add(day);
  }, { kind: "small" });
  for (const slot of slots) add(slot.day_of_week, slot.start_time, slot.end_time);
  const element = h("div", {}, rows, h("div", { class: "actions" }, more, week));
  element.read = () => [...rows.children].map((row) => {
    const [day, start, end] = [...row.querySelectorAll("select, input")].map((each) => each.value.trim());
    return { day_of_week: Number(day), start_time: start, end_time: end };
  });
  return element;
}

/**
 * The fields of a campaign's settings. `given`: the settings to begin with, as the API shows them; `most`: the calls in
 * progress that the organization may have; `ownZone`: the time zone to begin with if there is no schedule. `read()` of
 * the element gives the members of a request.
 */
export function settingsFields(given, most, ownZone = OWN_ZONE) {
  const schedule = given.schedule_config ?? { enabled: false, timezone: ownZone, slots: [] };
  const retry = given.retry_config;
  const breaker = given.circuit_breaker ?? {};
  const zones = h("datalist", { id: "time-zones" },
    (Intl.supportedValuesOf?.("timeZone") ?? []).map((name) => h("option", { value: name })));
  const control = {
    scheduled: checkbox(schedule.enabled && schedule.slots.length > 0),
    zone: input({ value: schedule.timezone, list: "time-zones", spellcheck: "false" }),
    slots: windows(schedule.slots),
    from: time(given.calling_hours?.start ?? "", "Earliest time of day"),
    to: time(given.calling_hours?.end ?? "", "Latest time of day"),
    aDay: count(given.max_attempts_per_day, { min: "1", max: "100" }),
    concurrency: count(given.max_concurrency, { min: "1", max: "100" }),
    retried: checkbox(retry.enabled),
    retries: count(retry.max_retries, { min: "0", max: "10" }),
    delay: count(retry.retry_delay_seconds, { min: "30" }),
    busy: checkbox(retry.retry_on_busy),
    noAnswer: checkbox(retry.retry_on_no_answer),
    voicemail: checkbox(retry.retry_on_voicemail),
    breaks: checkbox(breaker.enabled ?? true),
    share: count(breaker.failure_threshold ?? 0.5, { min: "0", max: "1", step: "any" }),
    window: count(breaker.window_seconds ?? 120, { min: "30", max: "600" }),
    least: count(breaker.min_calls_in_window ?? 5, { min: "1", max: "100" }),
  };
  const zone = field("Time zone of these windows", control.zone, { name: "schedule_config.timezone" });
  const slots = field("Windows of the week", control.slots, {
    name: "schedule_config", help: "A window may go past midnight, from 22:00 to 06:00. 24:00 is the end of a day.",
  });
  const showSchedule = () => (zone.hidden = slots.hidden = !control.scheduled.checked);
  control.scheduled.addEventListener("change", showSchedule);
  showSchedule();
  const kept = "Once set it can be changed, but not removed.";
  const element = h("div", {}, zones,
    fieldset("When",
      field("Only within windows of the week", control.scheduled, { help: "Otherwise the campaign calls at any time." }),
      zone, slots,
      field("Calling hours of each contact", h("div", { class: "range" }, control.from, h("span", {}, "to"), control.to), {
        name: "calling_hours",
        help: `On the contact's own clock: that of its column timezone, or of its number. ${kept}`,
      })),
    fieldset("How often",
      h("div", { class: "fields" },
        field("Calls in progress, at most", control.concurrency, {
          name: "max_concurrency", help: `Your organization has ${most}, for all its calls. ${kept}`,
        }),
        field("Attempts a day for one number", control.aDay, {
          name: "max_attempts_per_day", help: `Within any 24 hours, by all campaigns. ${kept}`,
        }))),
    fieldset("Retries",
      field("Call again who wasn't reached", control.retried, { name: "retry_config.enabled" }),
      h("div", { class: "fields" },
        field("Retries of a contact", control.retries, { name: "retry_config.max_retries", help: "Besides the first call." }),
        field("Seconds until a retry", control.delay, { name: "retry_config.retry_delay_seconds" })),
      field("After busy", control.busy), field("After no answer", control.noAnswer), field("After voicemail", control.voicemail)),
    details("Pause by itself when calls fail",
      field("Pause the campaign when too many calls fail", control.breaks),
      h("div", { class: "fields" },
        field("Share of failed calls", control.share, { name: "circuit_breaker.failure_threshold", help: "0.5 is half of them." }),
        field("Counted over so many seconds", control.window, { name: "circuit_breaker.window_seconds" }),
        field("With at least so many calls", control.least, { name: "circuit_breaker.min_calls_in_window" }))));
  element.read = () => {
    const hours = [control.from.value.trim(), control.to.value.trim()];
    const read = {
      retry_config: {
        enabled: control.retried.checked,
        max_retries: numberIn(control.retries),
        retry_delay_seconds: numberIn(control.delay),
        retry_on_busy: control.busy.checked,
        retry_on_no_answer: control.noAnswer.checked,
        retry_on_voicemail: control.voicemail.checked,
      },
      circuit_breaker: {
        enabled: control.breaks.checked,
        failure_threshold: numberIn(control.share),
        window_seconds: numberIn(control.window),
        min_calls_in_window: numberIn(control.least),
      },
      max_concurrency: numberIn(control.concurrency),
      max_attempts_per_day: numberIn(control.aDay),
      calling_hours: hours.some(Boolean) ? { start: hours[0], end: hours[1] } : null,
      schedule_config: null,
    };
    if (control.scheduled.checked) {
      read.schedule_config = { enabled: true, timezone: control.zone.value.trim(), slots: control.slots.read() };
    } else if (given.schedule_config) {
      read.schedule_config = { ...given.schedule_config, enabled: false };
    }
    return read;
  };
  return element;
}

const windowsInWords = ({ slots, timezone }) =>
  `${slots.map((slot) => `${DAYS[slot.day_of_week]} ${slot.start_time} to ${slot.end_time}`).join(", ")} (${timezone})`;

/** When a campaign calls, by its own settings and the organization's, a phrase for each; none if it calls at any time. */
export function hoursInWords({ schedule_config: schedule, calling_hours: own }, { calling_hours: all }) {
  const clock = ({ start, end }) => `from ${start} to ${end} on each contact's clock`;
  return [
    schedule?.enabled && `within ${windowsInWords(schedule)}`,
    own && clock(own),
    all && `${clock(all)} as your organization does`,
  ].filter(Boolean);
}

/** The settings of a campaign in words: [name, text] pairs. */
export function settingsInWords(campaign) {
  const { retry_config: retry, schedule_config: schedule, calling_hours: hours, circuit_breaker: breaker } = campaign;
  const after = [["busy", retry.retry_on_busy], ["no answer", retry.retry_on_no_answer], ["voicemail", retry.retry_on_voicemail]]
    .filter(([, isChosen]) => isChosen).map(([name]) => name);
  return [
    ["Schedule", schedule?.enabled ? windowsInWords(schedule) : "at any time"],
    ["Calling hours", hours ? `${hours.start} to ${hours.end} on the contact's clock` : "not limited"],
    ["Calls in progress", campaign.max_concurrency ? `at most ${campaign.max_concurrency}` : "as many as the organization may have"],
    ["Attempts a day", campaign.max_attempts_per_day ? `at most ${campaign.max_attempts_per_day} for one number` : "not limited"],
    ["Retries", retry.enabled && retry.max_retries && after.length
      ? `${retry.max_retries}, ${seconds(retry.retry_delay_seconds)} later, after ${after.join(", ")}` : "none"],
    ["Pauses by itself", breaker.enabled
      ? `when ${Math.round(100 * breaker.failure_threshold)} % of at least ${breaker.min_calls_in_window} calls within ${breaker.window_seconds} s fail`
      : "never"],
  ];
}
