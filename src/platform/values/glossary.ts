/**
 * The main terms of this program, as types.
 *
 *   email      one accepted send; has an emailId (UUID v7)
 *   message    the exact bytes for the wire, signed, written once, shared by the email's recipients
 *   delivery   one email for one recipient: the unit of queueing, with a return path of its own
 *   attempt    one try of one delivery: the hosts tried, TLS, the SMTP transcript, one outcome
 *   outcome    delivered, deferred or bounced, decided in outcome.ts; in doubt deferred
 *   event      a fact about an email; never changed, only added
 *
 * Times are milliseconds since the epoch unless a name says otherwise.
 */

/** In which list of the send a recipient is. `bcc`: in the envelope only, in no header. */
export const recipientKinds = ['to', 'cc', 'bcc'] as const;

export type RecipientKind = (typeof recipientKinds)[number];

/**
 * The owner of this server's own mail (invitations, resets, notices), whatever domain it is sent from. With the first such mail it
 * gets a row among the organizations, so that all that is asked by organization leaves its mail out. No person, key or list
 * knows it.
 */
export const serverOrgId = '00000000-0000-7000-8000-000000000000';

/** The states of a delivery; mail/queue/README.md has the transitions between them. */
export const deliveryStates = [
  'scheduled',
  'queued',
  'sending',
  'deferred',
  'held',
  'delivered',
  'bounced',
  'complained',
  'expired',
  'canceled',
  'suppressed',
  'insufficient_credit',
] as const;

export type DeliveryStatus = (typeof deliveryStates)[number];

/** Other services whose APIs Postern answers (front/dialects/). */
export const dialectNames = ['resend', 'postmark', 'sendgrid', 'mailgun'] as const;

export type DialectName = (typeof dialectNames)[number];

export const eventTypes = [
  'email.scheduled',
  'email.queued',
  'email.delivered',
  'email.deferred',
  'email.bounced',
  'email.forward_failed',
  'email.expired',
  'email.suppressed',
  'email.opened',
  'email.clicked',
  'email.complained',
  'email.unsubscribed',
  'email.held',
  'email.canceled',
  'email.repeated',
  'email.received',
  'suppression.added',
  'suppression.removed',
  'credits.low',
  'credits.exhausted',
  'domain.verified',
  'domain.unverified',
  'pause.started',
  'pause.warned',
  'pause.ended',
  'webhook.test',
  'webhook.disabled',
] as const;

export type EventType = (typeof eventTypes)[number];

/** One SMTP reply. `enhanced` is the enhanced status code of RFC 3463 ("5.1.1"), null if the host sent none. */
export interface Reply {
  code: number;
  enhanced: string | null;
  text: string;
}

/** The host of a session: its name, the address connected to, the port. */
export interface Peer {
  host: string;
  address: string;
  port: number;
}

/**
 * How the connection was protected, and which policy applied. `verified`: the certificate satisfies the policy, or if
 * there is none, a public authority has issued it for the host. Null takes its place for a connection without TLS.
 */
export interface TlsUsed {
  protocol: string;
  cipher: string;
  /** The group of the key exchange, as in X25519MLKEM768; null if it had none. Absent up to version 0.7. */
  group?: string | null;
  verified: boolean;
  policy: TlsFloor | 'mta-sts' | 'dane';
}

/** The failures of TLS at a host, in the words of reports (RFC 8460 section 4.3). */
export type TlsFailureType =
  | 'starttls-not-supported'
  | 'certificate-expired'
  | 'certificate-host-mismatch'
  | 'certificate-not-trusted'
  | 'validation-failure'
  | 'tlsa-invalid'
  | 'dnssec-invalid'
  | 'sts-policy-fetch-error';

/**
 * How TLS with a host went: without `failure` there is TLS, with any certificate; `certificateFailure`: what is wrong with
 * that.
 */
export interface TlsTrial {
  failure: TlsFailureType | null;
  certificateFailure: TlsFailureType | null;
  reason: string | null;
}

/** One new connection, or the decision against one, as the recipient's domain is told in a report (RFC 8460). */
export interface TlsSession {
  policy: 'tlsa' | 'sts' | 'no-policy-found';
  /** The published policy: the TLSA records, or the lines of the MTA-STS policy. */
  policyText: string[];
  host: string;
  address: string | null;
  /** Our own address; null: the system chose it. */
  source: string | null;
  /** Null: TLS as the policy demands; without a policy, any TLS. */
  failure: TlsFailureType | null;
  reason: string | null;
}

/** One TLSA record (RFC 6698 section 2.1): what a host's certificate is, published in DNS. */
export interface TlsaRecord {
  usage: number;
  selector: number;
  matching: number;
  data: Buffer;
}

/**
 * The least protection that a sender demands. opportunistic: TLS if the host offers it; encrypted: TLS with any
 * certificate; verified: TLS with a certificate of a known authority for the host's name.
 */
export type TlsFloor = 'opportunistic' | 'encrypted' | 'verified';

/**
 * The TLS that a mail demands: its sender's floor, or what the mail itself says (RFC 8689). requiretls: only hosts whose name
 * and certificate are proven and that pass the demand on (REQUIRETLS). not-required: what the recipient's domain demands
 * does not hold for this mail (the header `TLS-Required: No`).
 */
export type MailTls = TlsFloor | 'requiretls' | 'not-required';

/** The side that is to blame for a failure, so that the sender knows where to look for a remedy; `bounce.fault` of the API. */
export type Fault = 'recipient' | 'sender' | 'infrastructure' | 'content';

/** The command that a reply answers, in the order of a session. `dot` is the end of the message. */
export type Phase = 'greeting' | 'ehlo' | 'starttls' | 'mail' | 'rcpt' | 'data' | 'dot' | 'rset';

/** Why a delivery bounced. */
export interface Bounce {
  type: 'hard' | 'soft';
  category: string;
  fault: Fault;
  diagnostic: string;
}

export interface Verdict {
  outcome: 'delivered' | 'deferred' | 'bounced';
  /** The kind of failure, as in outcome.ts; null when delivered. */
  category: string | null;
  fault: Fault | null;
  /** Hard: this recipient will never work. Soft: this mail failed, another may pass. Null unless bounced. */
  bounce: 'hard' | 'soft' | null;
  /** Whether the recipient's hosts (remote) or this service (local) held the mail back. */
  origin: 'remote' | 'local';
  /** One sentence of evidence: the remote reply, or what went wrong. */
  diagnostic: string;
  /** The message may have arrived although no reply said so: the connection was lost after the final dot. */
  possibleDuplicate: boolean;
  /** The name of the deciding rule in outcome.ts or mail/deliver/reply-rules/; null when delivered. */
  rule: string | null;
  /** When the host asked us to retry, in milliseconds from now; null if it did not say. */
  retryAfterMs: number | null;
}

/**
 * How an attempt found the destination itself. working: it accepts mail. throttled: it asked us to slow down (421,
 * rate limits in 4.7.x, refused connections beside working ones). dead: nothing there answers. Null: nothing.
 */
export type Signal = 'working' | 'throttled' | 'dead' | null;

/** One line of a transcript. `ms` is counted from the attempt's start; `note` is our own remark, not sent. */
export interface TranscriptLine {
  ms: number;
  from: 'client' | 'server' | 'note';
  text: string;
}

/** A larger message is read from the database only when its delivery starts, so that queued messages use little memory. */
export const maxPreloadedBytes = 64 * 1024;

/** Names the due deliveries of one organization for one recipient domain. */
export interface Backlog {
  domain: string;
  orgId: string;
}

/** A delivery as the runner holds it while it is being sent. */
export interface Delivery {
  id: string;
  emailId: string;
  orgId: string;
  messageId: string;
  recipient: string;
  /**
   * The recipient's domain as a lower-case A-label, as it is looked up; `testRoute` for test mail
   * (platform/values/test-route.ts).
   */
  domain: string;
  from: string;
  tags: Record<string, string>;
  /** Null: `transactional` (platform/values/stream.ts). */
  stream?: string | null;
  /** Attempts made before this one. */
  attempts: number;
  createdAt: number;
  /** When this attempt fell due. */
  dueAt: number;
  expiresAt: number;
  /** The sender has set `expiresAt`: no attempt starts at or after it. Else the last attempt is made then. */
  hasDeadline?: boolean;
  tls: MailTls;
  /** The message's bytes if they are in memory; else they are read when the delivery starts. */
  message?: Buffer;
}

export interface Attempt {
  /** The destination whose hosts were tried (platform/values/destination-shape.ts). */
  destination: string;
  signal: Signal;
  startedAt: number;
  endedAt: number;
  verdict: Verdict;
  /** The deciding reply, if a host gave one. */
  reply: Reply | null;
  mx: Peer | null;
  tls: TlsUsed | null;
  transcript: TranscriptLine[];
  /** The sessions for the reports of RFC 8460, if they are sent. */
  tlsSessions?: TlsSession[];
}

/** One sender address with its display name; `header` is the string as the caller gave it. */
export interface Mailbox {
  name: string;
  address: string;
  /** The domain as its A-label in lower case. */
  domain: string;
}
