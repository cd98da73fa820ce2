/**
 * Received mail: mail that comes in for an application, at a domain that its organization has made receiving. (Mail that comes
 * back to us, as a bounce or a report, is returned mail: mail/returned/.) A receiving route says what becomes of it.
 *
 * A mail is one record for each route that takes it, with all its recipients of that route. The record is kept for a bounded
 * time; its bytes are those that came, after our Received and Authentication-Results fields.
 */

/**
 * webhook: kept, in the event feed, and posted; store: kept and in the feed; reject: refused at RCPT; drop: accepted, and not
 * kept.
 */
export const receivingActions = ['webhook', 'store', 'reject', 'drop'] as const;

type ReceivingAction = (typeof receivingActions)[number];

/** What becomes of a mail that fails the DMARC policy `reject` of its From domain. */
export const dmarcChoices = ['accept', 'reject'] as const;

export interface ReceivingRoute {
  id: string;
  orgId: string;
  /** A receiving domain of the organization, as an A-label in lower case. */
  domain: string;
  /** The first route that matches decides: by ascending priority, then by id. */
  priority: number;
  /** The addresses that it takes, as its owner wrote it. */
  pattern: string;
  action: ReceivingAction;
  /** Of the action `webhook`: the endpoint; null: every endpoint that subscribes to `email.received`. */
  webhookId: string | null;
  /** Of the action `reject`: the reply, as in `550 5.7.1 No replies here`; null: the server's own. */
  reply: string | null;
  dmarc: (typeof dmarcChoices)[number];
  /** Bytes of a mail; null: as many as the server takes. */
  largest: number | null;
  createdAt: number;
  updatedAt: number;
}

/** The maximum size of a received mail, before our fields. */
export const maxReceivedBytes = 25 * 1024 * 1024;

/** The results of RFC 8601. */
export type AuthenticationResult =
  | 'none'
  | 'pass'
  | 'fail'
  | 'softfail'
  | 'neutral'
  | 'policy'
  | 'temperror'
  | 'permerror';

export interface Verdicts {
  /** `domain`: that of MAIL FROM, or of EHLO if the sender is empty. */
  spf: { result: AuthenticationResult; domain: string | null };
  /** One for each signature, up to a maximum. */
  dkim: { result: AuthenticationResult; domain: string | null; selector: string | null }[];
  /** `policy`: what the From domain asks for if DMARC fails; null without a record. */
  dmarc: {
    result: AuthenticationResult;
    domain: string | null;
    policy: 'none' | 'quarantine' | 'reject' | null;
  };
  /** Read only: the state of the chain of ARC sets. */
  arc: { result: AuthenticationResult };
}

/** The verdict of Rspamd or SpamAssassin. */
export interface SpamVerdict {
  isSpam: boolean;
  score: number;
  /** The score from which mail is spam. */
  threshold: number;
  /** The rules that hit. */
  rules: string[];
}

export interface ReceivedAttachment {
  /** From 0, as in the path of its download. */
  position: number;
  /** Null if the mail does not name it. */
  filename: string | null;
  type: string;
  /** Bytes, decoded. */
  size: number;
  /** Without its angle brackets. */
  contentId: string | null;
  isInline: boolean;
}

/** What is stored beside the bytes, so that lists and events need not parse them. */
export interface ReceivedSummary {
  /** False: the mail could not be parsed, or not within the limits of time and memory; only its bytes are known. */
  isReadable: boolean;
  /** The beginning of the text, for lists. */
  preview: string;
  /** Characters. */
  textLength: number;
  htmlLength: number;
  attachments: ReceivedAttachment[];
  /** The Message-IDs of References, without angle brackets: the last ones, for an answer. */
  references: string[];
  /** It was sent by a program: Auto-Submitted, a list, the null sender. Answering it by a program may loop. */
  isAutomatic: boolean;
  verdicts: Verdicts;
  /** Null: no filter is configured, or it did not answer in time. */
  spam: SpamVerdict | null;
  /** Null: the client did not use TLS. */
  tls: { protocol: string; cipher: string } | null;
}

/** The record of a received mail without its bytes. */
export interface ReceivedMail {
  id: string;
  orgId: string;
  domain: string;
  /** The route may have been changed or removed since. */
  routeId: string;
  action: 'webhook' | 'store';
  webhookId: string | null;
  /** Those of RCPT TO, as written. */
  recipients: string[];
  /** That of MAIL FROM; empty: the null sender. */
  sender: string;
  /** Address of the SMTP client. */
  peer: string;
  helo: string;
  /** Without its angle brackets; null if the mail has none. */
  messageId: string | null;
  /** Decoded. */
  subject: string;
  /** The From field, decoded. */
  fromHeader: string;
  /** The email of the same organization that this mail answers. */
  inReplyTo: string | null;
  summary: ReceivedSummary;
  /** Bytes, with our fields. */
  size: number;
  at: number;
}

/** What the guarded thread reads from the bytes of a received mail, whole. */
export interface ReceivedContent {
  /** In order, decoded; the name as written. */
  headers: { name: string; value: string }[];
  /** Of mail that has only HTML, the text is made from it. */
  text: string;
  /** Null if the mail has none. */
  html: string | null;
  /** The text without the quoted mail and the signature below it. */
  reply: string;
  attachments: ReceivedAttachment[];
}

/**
 * The `data` of the event `email.received`: what an application decides by, in less than 4 KB. The content is fetched by
 * `receivedId`. It names its route, so that the webhooks know which endpoints get it.
 */
export interface ReceivedEvent {
  receivedId: string;
  /** The first ones. */
  recipients: string[];
  sender: string;
  /** The From field. */
  from: string;
  subject: string;
  messageId: string | null;
  size: number;
  attachmentCount: number;
  inReplyTo: { emailId: string } | null;
  automatic: boolean;
  spf: AuthenticationResult;
  /** `pass` if any signature passes, else that of the first. */
  dkim: AuthenticationResult;
  dmarc: AuthenticationResult;
  arc: AuthenticationResult;
  spam: Pick<SpamVerdict, 'isSpam' | 'score'> | null;
  routeId: string;
  action: 'webhook' | 'store';
  webhookId: string | null;
}

/** So many recipients are in an event; the record has all. */
const maxEventRecipients = 5;
/** UTF-16 units of a text in an event. */
const longestEventText = 250;

export function receivedEvent(mail: ReceivedMail): ReceivedEvent {
  const { verdicts, spam, attachments, isAutomatic } = mail.summary;
  const cut = (text: string) => text.slice(0, longestEventText).toWellFormed();
  return {
    receivedId: mail.id,
    recipients: mail.recipients.slice(0, maxEventRecipients),
    sender: cut(mail.sender),
    from: cut(mail.fromHeader),
    subject: cut(mail.subject),
    messageId: mail.messageId && cut(mail.messageId),
    size: mail.size,
    attachmentCount: attachments.length,
    inReplyTo: answeredEmail(mail),
    automatic: isAutomatic,
    spf: verdicts.spf.result,
    dkim: dkimResult(verdicts),
    dmarc: verdicts.dmarc.result,
    arc: verdicts.arc.result,
    spam: spam && { isSpam: spam.isSpam, score: spam.score },
    routeId: mail.routeId,
    action: mail.action,
    webhookId: mail.webhookId,
  };
}

/** As it is shown outside. */
export function answeredEmail({ inReplyTo: emailId }: ReceivedMail): { emailId: string } | null {
  return emailId === null ? null : { emailId };
}

function dkimResult({ dkim }: Verdicts): AuthenticationResult {
  const passed = dkim.find(({ result }) => result === 'pass');
  return (passed ?? dkim[0])?.result ?? 'none';
}
