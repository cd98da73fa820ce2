/**
 * Every metric of Postern: its name, kind, labels and a sentence; README.md has the table made of it. Names follow
 * Prometheus: base units, `_total` for what is counted. No label has more values than the program knows by itself:
 * never a domain, an address or an organization.
 */

export interface Documented {
  kind: 'counter' | 'gauge' | 'histogram';
  name: string;
  help: string;
  labels: readonly string[];
  /** A histogram's upper bounds. */
  buckets?: readonly number[];
}

const counter = (name: string, help: string, labels: readonly string[] = []) =>
  ({ kind: 'counter', name, help, labels }) as const;

const gauge = (name: string, help: string, labels: readonly string[] = []) =>
  ({ kind: 'gauge', name, help, labels }) as const;

const histogram = (name: string, help: string, buckets: readonly number[], labels: readonly string[] = []) =>
  ({ kind: 'histogram', name, help, labels, buckets }) as const;

const minute = 60;
const hour = 60 * minute;

/** From a disk that syncs at once to one that hangs. */
const commits = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
const calls = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** To the timeouts of RFC 5321, and through several hosts. */
const attempts = [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, minute, 5 * minute, 10 * minute];
/** From mail that is sent at once, over the retry schedule, to the maximum age. */
const latencies = [
  ...[0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, minute, 5 * minute, 15 * minute],
  ...[hour, 4 * hour, 12 * hour, 48 * hour],
];

export const catalog = {
  sendsAccepted: counter('postern_sends_accepted_total', 'Sends accepted, by the API and over SMTP.'),
  sendsReplayed: counter('postern_sends_replayed_total', 'Sends answered with the answer of an earlier one.'),
  sendsRefused: counter(
    'postern_sends_refused_total',
    "Sends refused, by the API's error code; via smtp: logins too.",
    ['via', 'code'],
  ),
  recipientsAccepted: counter('postern_recipients_accepted_total', 'Recipients accepted.'),
  recipientsSkipped: counter(
    'postern_recipients_skipped_total',
    'Recipients of accepted sends left out: suppressed, insufficient_credit.',
    ['reason'],
  ),
  outcomes: counter(
    'postern_outcomes_total',
    'Attempts recorded, by outcome (delivered, deferred, bounced, expired) and category of trouble (or none).',
    ['outcome', 'category'],
  ),
  attemptDuration: histogram(
    'postern_attempt_duration_seconds',
    'Time of one attempt, over all hosts that it tried.',
    attempts,
    ['outcome'],
  ),
  deliveryLatency: histogram(
    'postern_delivery_latency_seconds',
    'Time from the accepted send to its delivery.',
    latencies,
  ),
  queueDeliveries: gauge(
    'postern_queue_deliveries',
    'Deliveries in the queue: due (waiting for room), later (their next attempt is to come), sending, held.',
    ['state'],
  ),
  queueOldestDue: gauge(
    'postern_queue_oldest_due_age_seconds',
    'How long the delivery that has been due the longest has been; 0 where none is.',
  ),
  measuredAge: gauge(
    'postern_queue_measured_age_seconds',
    'Age of the counts of the queue and of webhooks; a long queue is counted less often.',
  ),
  inFlight: gauge('postern_deliveries_in_flight', 'Deliveries that this node is making.'),
  smtpConnections: gauge(
    'postern_smtp_connections',
    'Connections to other mail servers: busy, or idle between two mails.',
    ['state'],
  ),
  circuitsOpen: gauge(
    'postern_circuits_open',
    'Destinations where nothing answers, which only a probe is sent to.',
  ),
  destinationsBusy: gauge('postern_destinations_busy', 'Destinations that ask to be sent less.'),
  commitDuration: histogram(
    'postern_commit_duration_seconds',
    'Time of one group commit: accept, outcomes, returned, usage, visits, webhooks.',
    commits,
    ['kind'],
  ),
  commitItems: counter('postern_commit_items_total', 'What group commits had in them.', ['kind']),
  commitFailures: counter('postern_commit_failures_total', 'Group commits that failed.', ['kind']),
  inboundConnections: gauge('postern_inbound_connections', 'Clients of the SMTP ports.'),
  inboundMails: counter(
    'postern_inbound_mails_total',
    'Returned mail read, by what it is: failed, delayed, arrived, automatic, complaint, letter, dmarc, tls.',
    ['kind'],
  ),
  webhookPosts: counter(
    'postern_webhook_posts_total',
    'Posts to webhooks, by result: delivered, again, failed (given up), gone (410).',
    ['result'],
  ),
  webhookPostDuration: histogram(
    'postern_webhook_post_duration_seconds',
    'Time of one post to a webhook.',
    calls,
  ),
  webhookOpen: gauge(
    'postern_webhook_messages_open',
    'Messages to endpoints to be tried now or later, one at most for each endpoint and email.',
  ),
  webhookLag: gauge(
    'postern_webhook_lag_seconds',
    'Age of the oldest event that an active endpoint has not taken; 0 where there is none.',
  ),
  httpDuration: histogram(
    'postern_http_request_duration_seconds',
    'Time to the answer of an HTTP request, by method, route and class of its status.',
    calls,
    ['method', 'route', 'status'],
  ),
  diskFree: gauge('postern_disk_free_bytes', "What the data directory's disk has left."),
  diskReserve: gauge(
    'postern_disk_reserve_bytes',
    'POSTERN_MIN_FREE_SPACE: with less left, new mail is refused.',
  ),
  buildInfo: gauge('postern_build_info', 'Always 1; its labels tell what runs.', ['version', 'node']),
} satisfies Record<string, Documented>;
