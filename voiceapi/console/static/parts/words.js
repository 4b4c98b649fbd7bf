// The API's codes in plain words: how a call ended, and the states of whatever has one.

// A word may stand for several codes, which come from several carriers or from different parts of the service.
const WORDS = {
  // How a call or chat ended: its result, `disposition` in the API.
  call_duration_exceeded: "reached the longest duration",
  call_transferred: "transferred",
  do_not_call: "not to be called",
  end_call_tool: "agent hung up",
  ended: "ended",
  error: "could not be called",
  failed: "failed",
  opt_out: "asked not to be called again",
  pipeline_error: "technical fault",
  rewound: "taken back",
  system_cancelled: "canceled before the call",
  system_connect_error: "could not connect",
  transfer_call: "transferred",
  unexpected_error: "technical fault",
  unknown: "not known",
  user_disqualified: "agent gave up",
  user_hangup: "caller hung up",
  user_idle_max_duration_exceeded: "caller said nothing",
  user_qualified: "talked to the end",
  voicemail_detected: "voicemail",
  // What a carrier reports of a call, and whether a campaign's call was answered.
  answered: "answered",
  busy: "busy",
  canceled: "canceled",
  caller_hangs_up: "caller hung up",
  completed: "completed",
  "in-progress": "in progress",
  initialized: "not begun",
  initiated: "begun",
  lost: "end never reported",
  "no-answer": "no answer",
  no_answer: "no answer",
  refused: "refused by the carrier",
  ringing: "ringing",
  voicemail: "voicemail",
  // Campaigns and their contacts.
  created: "not started",
  dialing: "being called",
  in_progress: "in progress",
  paused: "paused",
  queued: "waiting",
  retry: "to be called again",
  running: "running",
  skipped: "skipped",
  syncing: "reading the list",
  // What happened to a contact, and why a campaign waits.
  attempts_a_day: "called often enough today",
  campaign_limit: "enough calls at once",
  country_not_allowed: "country not allowed",
  dialed: "called",
  hours_never_open: "no hours to call in",
  max_calls_a_day: "enough calls today",
  organization_limit: "enough calls at once",
  outside_hours: "outside calling hours",
  outside_schedule: "outside the schedule",
  pace: "one after the other",
  released: "not called after all",
  row_skipped: "row can't be called",
  zone_unknown: "time zone not known",
  // What a campaign's log holds.
  account_refused: "carrier refuses the account",
  batch_failed: "nobody can be called",
  carrier_busy: "carrier takes no calls for now",
  circuit_breaker_tripped: "too many calls failed",
  source_sync_failed: "list can't be read",
  // Agents, versions, tools, documents and deliveries.
  active: "in use",
  archived: "archived",
  dead_letter: "given up",
  draft: "draft",
  not_sent: "not sent",
  pending: "waiting",
  processing: "being read",
  published: "published",
  ready: "ready",
  succeeded: "delivered",
  // What practice callers found, and how a call went that was played again.
  "dead-end": "dead end",
  diverges: "went another way",
  differs: "said something else",
  "loop-without-exit": "goes round in circles",
  not_replayed: "not played again",
  "not-understood": "not understood",
  "pipeline-error": "technical fault",
  same: "the same",
  "tool-never-called": "tool never used",
};

/** A code of the API in plain words; one that a user made up, with spaces. */
export function words(code) {
  return WORDS[code] ?? String(code).replaceAll("_", " ");
}

/** Which of these codes a typed text means: those shown in these words, or the one it names; the text itself if none. */
export function codesIn(text, codes) {
  const plain = (each) => String(each).replaceAll("_", " ").toLowerCase();
  const found = codes.filter((code) => words(code).toLowerCase() === text.toLowerCase() || plain(code) === plain(text));
  return codes.includes(text) || !found.length ? [text] : found;
}
