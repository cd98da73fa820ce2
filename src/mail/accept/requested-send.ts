/** A send as the ways in hand it to accept.ts: the API and its dialects, submission, the dashboard, the command line. */
import type { Caller } from '#accounts/api-keys.ts';
import type { Attachment } from '#mail/compose/attachment.ts';
import type { Send } from '#platform/database/tables/send-record.ts';
import type { DialectName } from '#platform/values/glossary.ts';
import type { LackingField } from '#platform/values/one-click.ts';
import type { NamedAddress, Recipient } from '#platform/values/recipients.ts';
import type { SendTimes } from '#platform/values/send-times.ts';
import type { RequestLog } from './commit.ts';

/** A send that its schema has checked. */
export interface SendRequest extends SendTimes, RequestLog {
  /** In the order to, cc, bcc, each address once. */
  recipients: Recipient[];
  from: string;
  subject: string;
  html?: string;
  /** See mail/compose/mime.ts. */
  amp?: string | undefined;
  text?: string;
  replyTo?: NamedAddress[];
  /** A function if files are at URLs: it fetches them, and is called once, after all checks that need no content. */
  attachments: Attachment[] | (() => Promise<Attachment[]>);
  headers: Record<string, string>;
  tags: Record<string, string>;
  /** Overrides that of the key; null or `transactional`: the mail has none. */
  stream?: string | null | undefined;
  tracking: { openTracking?: boolean; clickTracking?: boolean };
  /** The caller's idempotency key and a hash of the whole request. */
  idempotency: { key: string; requestHash: string } | null;
  /** The mail's demand for TLS (RFC 8689): true: REQUIRETLS; false: the header `TLS-Required: No`. */
  tlsRequired?: boolean | undefined;
  isInBatch?: boolean;
  /** Of bulk mail, for which its stream may have it. */
  lacking?: LackingField | undefined;
  /** Called if the stream has not. */
  onLacksOneClick?(): void;
  /** A complete message, such as one that was submitted over SMTP; the members from `html` to `headers` are then unused. */
  rawMessage?: { raw: Buffer; messageId: string | null; received?: string };
  /** See platform/database/tables/send-record.ts. Without it: to; for a complete message: any, because SMTP knows no kinds. */
  mustReach?: Send['mustReach'];
  mustAffordAll?: Send['mustAffordAll'];
}

/** The sender: an API key or, in the dashboard, the organization itself. */
export type Sender = Pick<Caller, 'orgId' | 'scopes'> & {
  keyId: string | null;
  keyLabel?: string;
  isTest?: boolean;
  /** Of mail that names none. */
  stream?: string | null;
  /** Set for this server's own mail (glossary.ts): the organization whose domain it is sent from, and which never sees it. */
  domainOrgId?: string;
  /** The other service's API through which the request came. */
  dialect?: DialectName;
};
