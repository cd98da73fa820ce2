/**
 * Every metric of Postern with its kind, name, help text and labels; docs/metrics.md has the generated table. Names follow
 * the conventions of Prometheus: base units, `_total` for counters. The values of a label are a fixed set, never domains,
 * addresses or organizations.
 */

export interface Documented {
  kind: 'counter' | 'gauge' | 'histogram';
  name: string;
  help: string;
  labels: readonly string[];
  /** Upper bounds of a histogram. */
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

/** From a fast disk to one that hangs. */
const commits = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
const calls = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Up to the timeouts of RFC 5321, for several hosts. */
const attempts = [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, minute, 5 * minute, 10 * minute];
/** From immediate delivery, over the retry schedule, up to the maximum age. */
const latencies = [
  ...[0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, minute, 5 * minute, 15 * minute],
  ...[hour, 4 * hour, 12 * hour, 48 * hour],
];

export const catalog = {
  sendsAccepted: counter(
    'postern_sends_accepted_total',
    'Send requests accepted through the API or by SMTP submission.',
  ),
  sendsReplayed: counter(
    'postern_sends_replayed_total',
    'Repeated send requests that got the response of the first one (idempotency).',
  ),
  sendsRefused: counter(
    'postern_sends_refused_total',
    'Send requests refused, by API error code; with via="smtp", refused logins too.',
    ['via', 'code'],
  ),
  recipientsAccepted: counter('postern_recipients_accepted_total', 'Recipients accepted.'),
  recipientsSkipped: counter(
    'postern_recipients_skipped_total',
    'Recipients of accepted requests that get no mail, by reason: suppressed, insufficient_credit.',
    ['reason'],
  ),
  outcomes: counter(
    'postern_outcomes_total',
    'Delivery attempts recorded, by outcome (delivered, deferred, bounced, expired) and failure category (or none).',
    ['outcome', 'category'],
  ),
  attemptDuration: histogram(
    'postern_attempt_duration_seconds',
    'Duration of one delivery attempt, over all hosts that it tried.',
    attempts,
    ['outcome'],
  ),
  deliveryLatency: histogram(
    'postern_delivery_latency_seconds',
    'Time from accepting a send request to its delivery.',
    latencies,
  ),
  queueDeliveries: gauge(
    'postern_queue_deliveries',
    'Deliveries in the queue, by state: due (waiting for a free slot), later (next attempt in the future), sending, held, scheduled.',
    ['state'],
  ),
  queueOldestDue: gauge(
    'postern_queue_oldest_due_age_seconds',
    'Age of the oldest due delivery; 0 if there is none.',
  ),
  measuredAge: gauge(
    'postern_queue_measured_age_seconds',
    'Age of the queue and webhook counts; a long queue is counted less often.',
  ),
  inFlight: gauge('postern_deliveries_in_flight', 'Deliveries in progress on this node.'),
  smtpConnections: gauge(
    'postern_smtp_connections',
    'Connections to other mail servers, by state: busy, or idle between two messages.',
    ['state'],
  ),
  circuitsOpen: gauge(
    'postern_circuits_open',
    'Destinations whose circuit is open: no host answers, and only a probe delivery is sent.',
  ),
  destinationsBusy: gauge('postern_destinations_busy', 'Destinations that ask us to slow down.'),
  statusNeeds: gauge(
    'postern_status_needs',
    'Entries of `postern status`, by severity: act (needs action), watch.',
    ['severity'],
  ),
  destinationTrouble: gauge(
    'postern_destination_trouble_since_seconds',
    'Unix time since when something has been wrong at a destination, by cause as in `postern status`; at most 20 destinations.',
    ['destination', 'cause'],
  ),
  destinationWaiting: gauge('postern_destination_waiting', 'Mail that waits for a destination in trouble.', [
    'destination',
  ]),
  destinationRate: gauge(
    'postern_destination_accepted_per_minute',
    'Mail that a destination in trouble accepts a minute; absent until it is known.',
    ['destination'],
  ),
  destinationDrain: gauge(
    'postern_destination_drain_seconds',
    'Time until a destination in trouble has accepted what waits, at its present rate; absent if it accepts nothing.',
    ['destination'],
  ),
  certificateIssued: gauge(
    'postern_certificate_issued_seconds',
    'Unix time since when a certificate by ACME is valid; at most 20 hosts, the server’s own first.',
    ['host'],
  ),
  certificateExpires: gauge(
    'postern_certificate_expires_seconds',
    'Unix time until which a certificate by ACME is valid; at most 20 hosts.',
    ['host'],
  ),
  certificateFailing: gauge(
    'postern_certificate_failing_since_seconds',
    'Unix time since when a certificate by ACME cannot be issued or renewed, by the type of the last failure; at most 20 hosts.',
    ['host', 'type'],
  ),
  commitDuration: histogram(
    'postern_commit_duration_seconds',
    'Duration of one group commit, by kind: accept, outcomes, returned, usage, visits, webhooks.',
    commits,
    ['kind'],
  ),
  commitItems: counter('postern_commit_items_total', 'Items written by group commits, by kind.', ['kind']),
  commitFailures: counter('postern_commit_failures_total', 'Failed group commits, by kind.', ['kind']),
  smtpClientConnections: gauge(
    'postern_inbound_connections',
    'Client connections on the inbound and submission ports.',
  ),
  returnedMails: counter(
    'postern_inbound_mails_total',
    'Returned mail on the inbound port, by kind: failed, delayed, arrived, automatic, complaint, letter, dmarc, tls.',
    ['kind'],
  ),
  receivedMails: counter(
    'postern_received_mails_total',
    'Mail that came in for applications, by the action of its route: webhook, store, drop.',
    ['action'],
  ),
  webhookPosts: counter(
    'postern_webhook_posts_total',
    'Posts to webhooks, by result: delivered, again (will be retried), failed (no more retries), gone (410).',
    ['result'],
  ),
  webhookPostDuration: histogram(
    'postern_webhook_post_duration_seconds',
    'Duration of one post to a webhook.',
    calls,
  ),
  webhookOpen: gauge(
    'postern_webhook_messages_open',
    'Webhook messages not yet delivered; at most one for each endpoint and email.',
  ),
  webhookLag: gauge(
    'postern_webhook_lag_seconds',
    'Age of the oldest event that an active endpoint has not accepted yet; 0 if there is none.',
  ),
  httpDuration: histogram(
    'postern_http_request_duration_seconds',
    'Time to the response of an HTTP request, by method, route and status class.',
    calls,
    ['method', 'route', 'status'],
  ),
  diskFree: gauge('postern_disk_free_bytes', 'Free space on the disk of the data directory.'),
  diskReserve: gauge(
    'postern_disk_reserve_bytes',
    'Value of POSTERN_MIN_FREE_SPACE: with less free space, new mail is refused.',
  ),
  lastBackup: gauge(
    'postern_last_backup_timestamp_seconds',
    'Time of the last complete backup of the SQLite database, in Unix time; 0 before the first.',
  ),
  buildInfo: gauge('postern_build_info', 'Always 1; the labels are the versions of Postern and Node.', [
    'version',
    'node',
  ]),
} satisfies Record<string, Documented>;
