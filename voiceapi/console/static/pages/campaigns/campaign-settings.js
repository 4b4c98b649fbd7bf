// The settings of a campaign as a form: when to call, how often, how many at a time.

import { button, checkbox, details, field, fieldset, input, numberIn, seconds } from "../../parts/components.js";
import { h, uniqueId } from "../../parts/dom.js";

const DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const OWN_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

const time = (value, label, example = "09:00") => input({ value, class: "time", placeholder: example, "aria-label": label, maxlength: "5" });
const count = (value, props = {}) => input({ type: "number", value: value ?? "", inputmode: "numeric", step: "1", ...props });

/** What the clocks show in a time zone. */
function clockOf(timeZone) {
  try {
    return `It is ${new Intl.DateTimeFormat(undefined, { timeZone, weekday: "long", hour: "2-digit", minute: "2-digit" }).format()} there now.`;
  } catch {
    return "Such as Europe/Berlin or America/New_York.";
  }
}

/** The hours of a week, a row for each day; `read()` of the element gives the windows. */
function week(slots) {
  const days = DAYS.map((name, day) => {
    const windows = h("div", { class: "windows" });
    const chosen = checkbox(false, { id: uniqueId("day") });
    const add = (start = "09:00", end = "17:00") => {
      const number = windows.children.length + 1;
      const which = number > 1 ? ` (${number})` : "";
      const row = h("div", { class: "range" }, time(start, `${name}${which}, from`), h("span", {}, "to"), time(end, `${name}${which}, to`, "17:00"),
        number > 1 && button("×", () => {
          row.remove();
          more.focus();
        }, { kind: "small plain", "aria-label": `Remove these hours of ${name}` }));
      windows.append(row);
    };
    const more = button("+", () => {
      add("18:00", "20:00");
      windows.lastChild.querySelector("input").focus();
    }, { kind: "small plain", "aria-label": `More hours on ${name}` });
    const set = (given) => {
      windows.replaceChildren();
      for (const [start, end] of given) add(start, end);
      chosen.checked = given.length > 0;
      more.hidden = !given.length;
    };
    chosen.addEventListener("change", () => set(chosen.checked ? [["09:00", "17:00"]] : []));
    const read = () => [...windows.children].map((row) => [...row.querySelectorAll("input")].map((each) => each.value.trim()));
    set(slots.filter((slot) => slot.day_of_week === day).map((slot) => [slot.start_time, slot.end_time]));
    return { set, read, row: h("div", { class: "day" }, h("label", { for: chosen.id }, chosen, name), windows, more) };
  });
  const changed = () => element.dispatchEvent(new Event("input", { bubbles: true }));
  const element = h("div", { class: "week" }, days.map(({ row }) => row), h("div", { class: "actions" },
    button("Monday to Friday, 9 to 17", () => {
      days.forEach(({ set }, day) => set(day < 5 ? [["09:00", "17:00"]] : []));
      changed();
    }, { kind: "small" }),
    button("The first day's hours on all chosen days", () => {
      const first = days.find(({ read }) => read().length)?.read() ?? [];
      for (const { set, read } of days) if (read().length) set(first);
      changed();
    }, { kind: "small" })));
  element.read = () => days.flatMap(({ read }, day) => read().map(([start, end]) => ({ day_of_week: day, start_time: start, end_time: end })));
  return element;
}

const OFFICE_HOURS = DAYS.slice(0, 5).map((_, day) => ({ day_of_week: day, start_time: "09:00", end_time: "17:00" }));

/** What a new campaign begins with: as the last one, but never without hours. `given`: /organizations/campaign-defaults. */
export function firstSettings({ last_campaign_settings: last, default_retry_config: retry }, zone) {
  const hasHours = last?.schedule_config?.enabled || last?.calling_hours;
  return {
    ...last,
    retry_config: last?.retry_config ?? retry,
    schedule_config: hasHours ? last.schedule_config : { enabled: true, timezone: zone ?? OWN_ZONE, slots: OFFICE_HOURS },
  };
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
    slots: week(schedule.slots),
    from: time(given.calling_hours?.start ?? "", "Earliest time of day"),
    to: time(given.calling_hours?.end ?? "", "Latest time of day", "17:00"),
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
  const clock = h("span", { "aria-live": "polite" });
  const zone = field("Time zone of these hours", control.zone, { name: "schedule_config.timezone", help: clock });
  const showClock = () => { clock.textContent = clockOf(control.zone.value.trim()); };
  control.zone.addEventListener("input", showClock);
  showClock();
  const slots = field("Hours of the week", control.slots, {
    name: "schedule_config", help: "Hours may go past midnight, as from 22:00 to 06:00. 24:00 is the end of a day.",
  });
  const always = h("p", { class: "callout" }, "Without hours, people are called at any time of the day and night.");
  const showSchedule = () => {
    zone.hidden = slots.hidden = !control.scheduled.checked;
    always.hidden = control.scheduled.checked;
  };
  control.scheduled.addEventListener("change", showSchedule);
  showSchedule();
  const again = h("div", {},
    h("div", { class: "fields" },
      field("Calls again, at most", control.retries, { name: "retry_config.max_retries", help: "Besides the first call." }),
      field("Wait before each, in seconds", control.delay, { name: "retry_config.retry_delay_seconds" })),
    field("When the line was busy", control.busy), field("When nobody answered", control.noAnswer), field("When a voicemail answered", control.voicemail));
  const showRetries = () => { again.hidden = !control.retried.checked; };
  control.retried.addEventListener("change", showRetries);
  showRetries();
  const kept = "Once set it can be changed, but not removed.";
  const element = h("div", {}, zones,
    fieldset("When",
      field("Only at these hours", control.scheduled), always,
      slots, zone),
    fieldset("How many at once",
      field("Calls at the same time, at most", control.concurrency, {
        name: "max_concurrency", help: `Empty: up to the ${most} that the service makes at the same time. ${kept}`,
      })),
    fieldset("Who isn't reached",
      field("Call again who wasn't reached", control.retried, { name: "retry_config.enabled" }),
      again),
    details("Limits for each person",
      field("Hours of the day, on each person's own clock", h("div", { class: "range" }, control.from, h("span", {}, "to"), control.to), {
        name: "calling_hours",
        help: `Their clock is that of a column "timezone", or of the country of their number. Empty: only the hours above count. ${kept}`,
      }),
      field("Calls to one number within 24 hours, at most", control.aDay, {
        name: "max_attempts_per_day", help: `By all campaigns together. Empty: not limited. ${kept}`,
      })),
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

/** The hours of a week in words; days that follow each other with the same hours are put together. */
function windowsInWords({ slots, timezone }) {
  const groups = [];
  for (let day = 0; day < DAYS.length; day += 1) {
    const hours = slots.filter((slot) => slot.day_of_week === day).map((slot) => `${slot.start_time} to ${slot.end_time}`).join(" and ");
    const last = groups.at(-1);
    if (hours && last?.hours === hours && last.to === day - 1) last.to = day;
    else if (hours) groups.push({ from: day, to: day, hours });
  }
  const days = ({ from, to }) => (from === to ? DAYS[from] : `${DAYS[from]} ${to === from + 1 ? "and" : "to"} ${DAYS[to]}`);
  return `${groups.map((group) => `${days(group)} ${group.hours}`).join(", ")} (${timezone})`;
}

/** When a campaign calls, by its own settings and the organization's, a phrase for each; none if it calls at any time. */
export function hoursInWords({ schedule_config: schedule, calling_hours: own }, { calling_hours: all }) {
  const clock = ({ start, end }) => `from ${start} to ${end} on each person's clock`;
  return [
    schedule?.enabled && windowsInWords(schedule),
    own && clock(own),
    all && `${clock(all)} as your organization does`,
  ].filter(Boolean);
}

/** The settings of a campaign in words: [name, text] pairs. */
export function settingsInWords(campaign) {
  const { retry_config: retry, schedule_config: schedule, calling_hours: hours, circuit_breaker: breaker } = campaign;
  const after = [["the line was busy", retry.retry_on_busy], ["nobody answered", retry.retry_on_no_answer], ["a voicemail answered", retry.retry_on_voicemail]]
    .filter(([, isChosen]) => isChosen).map(([name]) => name);
  return [
    ["Hours", schedule?.enabled ? windowsInWords(schedule) : "at any time"],
    ["Hours on each person's clock", hours ? `${hours.start} to ${hours.end}` : "not limited"],
    ["Calls at the same time", campaign.max_concurrency ? `at most ${campaign.max_concurrency}` : "as many as the service makes"],
    ["Calls to one number within 24 hours", campaign.max_attempts_per_day ? `at most ${campaign.max_attempts_per_day}` : "not limited"],
    ["Called again", retry.enabled && retry.max_retries && after.length
      ? `at most ${retry.max_retries} ${retry.max_retries === 1 ? "time" : "times"}, after ${seconds(retry.retry_delay_seconds)}, when ${after.join(", ")}` : "never"],
    ["Pauses by itself", breaker.enabled
      ? `when ${Math.round(100 * breaker.failure_threshold)} % of at least ${breaker.min_calls_in_window} calls within ${breaker.window_seconds} s fail`
      : "never"],
  ];
}
