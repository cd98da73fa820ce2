/**
 * Makes a request of an email for a dialect: checks the fields by the rules of our own endpoint, with the dialect's own limits.
 * Addresses can have display names, as these services allow; contents and times are checked as ours are.
 */
import { hash } from 'node:crypto';
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { decodeWords } from 'postal-mime';
import { z } from 'zod';
import { attachments } from '#front/api/send/attachments.ts';
import {
  attachmentsOf,
  body,
  headersWithin,
  scheduledAt,
  subject,
  tagsWithin,
  tlsRequiredIn,
  tracking,
} from '#front/api/send/schema.ts';
import { warnOfBulk } from '#front/api/send/warning.ts';
import { toIssues } from '#front/http/issues.ts';
import { rule } from '#front/http/schema-rule.ts';
import type { SendRequest } from '#mail/accept/requested-send.ts';
import { recipientsIn } from '#mail/record/refused-sends.ts';
import { newId } from '#platform/base/id.ts';
import { mailboxCure, parseMailbox } from '#platform/values/address.ts';
import { trimBlanks } from '#platform/values/hidden-characters.ts';
import { lackingHeader } from '#platform/values/one-click.ts';
import { recipientsOf } from '#platform/values/recipients.ts';
import { type Issue, Refusal } from '#platform/values/refusal.ts';
import { scheduledAtRefusal } from '#platform/values/send-times.ts';
import { longestAddresses } from './address-texts.ts';
import type { DialectCall } from './dialect.ts';
import { refuses } from './refusals.ts';

const maxHeaders = 50;
/** Resend's limit; the other services have no keys. */
const maxKeyLength = 256;

/** Resend's limits; all of them together are SendGrid's. */
const maxTagCharacters = 10_000;
const charactersIn = (pairs: Record<string, string>) => Object.entries(pairs).flat().join('').length;

export const tags = tagsWithin({ pairs: 75, name: 256, value: 2000 }).check(
  rule((pairs) => charactersIn(pairs) <= maxTagCharacters, `at most ${maxTagCharacters} characters in all`),
);

const expectedMailbox = 'an email address, or Name <address>';

/** In characters: an address with a name of 400 characters of any script, as encoded words. */
const longestMailbox = 2_500;

function mailboxIn(text: string) {
  return text.length > longestMailbox ? null : parseMailbox(decodeWords(text));
}

/** Names come unquoted, with commas and as encoded words (RFC 2047). */
export const mailbox = z.string().transform((text, context) => {
  const parsed = mailboxIn(text);
  if (parsed) return parsed;
  const params = { expected: expectedMailbox };
  const message = `must be ${expectedMailbox}${mailboxCure(text)}`;
  context.addIssue({ code: 'custom', message, params });
  return z.NEVER;
});

/** Many addresses are one issue if they are too long together: each is decoded. */
const mailboxes = (minimum: number) =>
  z.preprocess((list, context) => {
    if (!Array.isArray(list)) return list;
    const length = list.reduce((sum, one) => sum + (typeof one === 'string' ? one.length : 0), 0);
    if (length <= longestAddresses) return list;
    const expected = `addresses of at most ${longestAddresses / 1024} KiB together`;
    context.addIssue({ code: 'custom', message: `must be ${expected}`, params: { expected }, input: list });
    return z.NEVER;
  }, z.array(mailbox).min(minimum));

const sendFields = z.object({
  from: z
    .string()
    .overwrite(trimBlanks)
    .check(rule((text) => mailboxIn(text) !== null, expectedMailbox, mailboxCure)),
  to: mailboxes(1),
  cc: mailboxes(0).optional(),
  bcc: mailboxes(0).optional(),
  replyTo: mailboxes(0).optional(),
  subject,
  html: body,
  text: body,
  amp: body,
  headers: headersWithin(maxHeaders).optional(),
  tags: tags.optional(),
  attachments: attachments.optional(),
  tracking: tracking.optional(),
  scheduledAt: scheduledAt.optional(),
});

/** A dialect's request with our names, not checked yet. */
export type DialectSend = { [Name in keyof z.input<typeof sendFields>]: unknown };

export interface SendTerms {
  /** In to, cc and bcc together. */
  maxRecipients: number;
  /** The dialect's names of our fields, for the paths of issues. */
  names: Readonly<Record<string, string>>;
  /** How many people the call sends the body to, if it makes several emails of it. */
  audience?: number;
}

/**
 * A checked request that is not accepted yet. The duplicate window of our own endpoint does not apply: two receipts with one
 * subject are two emails.
 */
export function requestOf(
  { caller, context, fetchAll, now }: DialectCall,
  send: DialectSend,
  { maxRecipients, names, audience = 0 }: SendTerms,
  idempotency: SendRequest['idempotency'],
): SendRequest {
  const fields = checkBy(sendFields, send, names);
  // A repeat of a call with a key has the answer of the first, whose time may have passed.
  const isOnce = idempotency?.requestHash === '' && fields.scheduledAt !== undefined;
  const untimely = isOnce ? scheduledAtRefusal(fields.scheduledAt!, now) : null;
  if (untimely) throw invalid(untimely.issues, names);
  const recipients = recipientsOf(fields);
  if (recipients.length > maxRecipients)
    throw new Refusal(
      'BAD_REQUEST',
      `An email can have at most ${maxRecipients} recipients; this one has ${recipients.length}.`,
    );
  const { from, html, text, amp, headers = {} } = fields;
  return {
    recipients,
    from: decodeWords(from),
    subject: fields.subject,
    ...(html !== undefined && { html }),
    ...(text !== undefined && { text }),
    ...(amp !== undefined && { amp }),
    ...(fields.replyTo && { replyTo: fields.replyTo }),
    attachments: attachmentsOf(fields.attachments ?? [], fetchAll),
    headers,
    tags: fields.tags ?? {},
    tracking: fields.tracking ?? {},
    scheduledAt: fields.scheduledAt,
    tlsRequired: tlsRequiredIn(headers),
    mustReach: refuses(caller.dialect, 'ALL_RECIPIENTS_SUPPRESSED') ? 'any' : 'none',
    idempotency,
    requestId: context.state.requestId,
    lacking: lackingHeader(headers, Math.max(audience, recipients.length)),
    onLacksOneClick: () => warnOfBulk(context),
  };
}

/** The requests of a call that has several emails. A Refusal stands for one that is not valid. */
export async function* requestsOf<Given>(
  list: Given[],
  requestAt: (given: Given, index: number) => SendRequest,
): AsyncGenerator<SendRequest | Refusal> {
  for (const [index, given] of list.entries()) {
    await yieldToOthers();
    try {
      yield { ...requestAt(given, index), isInBatch: true };
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      refusal.recipients = recipientsIn(given);
      yield refusal;
    }
  }
}

const contentFields = sendFields.pick({
  subject: true,
  html: true,
  text: true,
  amp: true,
  headers: true,
  tags: true,
});

/** The members that `checkContent` checks. */
export type DialectContent = Pick<DialectSend, keyof typeof contentFields.shape>;

/** The contents of an email that differs from another one, already checked, in nothing else but its recipient. */
export function checkContent(send: DialectContent, names: Readonly<Record<string, string>>) {
  return checkBy(contentFields, send, names);
}

function checkBy<Schema extends z.ZodType>(
  schema: Schema,
  given: Partial<DialectSend>,
  names: Readonly<Record<string, string>>,
): z.output<Schema> {
  const send = withTexts(given);
  const parsed = schema.safeParse(send);
  const hasContent = [send.html, send.text].some((part) => part !== undefined && part !== '');
  if (parsed.success && hasContent) return parsed.data;
  const issues = parsed.success ? [noContent(names)] : toIssues(parsed.error, send);
  throw invalid(issues, names);
}

function invalid(issues: readonly Issue[], names: Readonly<Record<string, string>>): Refusal {
  return new Refusal('VALIDATION_ERROR', 'The request is not valid.', {
    issues: issues.map((issue) => renamed(issue, names)),
  });
}

/** Fields of a delivery and of MIME parts that programs give among the headers of a call, as submission drops them. */
const ownHeaders = /^(?:return-path|mime-version)$/i;

/** Numbers and switches are texts where a text is meant. */
function withTexts(given: Partial<DialectSend>): Partial<DialectSend> {
  const send = { ...given };
  for (const name of ['subject', 'html', 'text'] as const) if (name in send) send[name] = textOf(send[name]);
  if (send.tags !== undefined) send.tags = textsIn(send.tags);
  if (send.headers !== undefined) send.headers = textsIn(send.headers, (name) => !ownHeaders.test(name));
  if (Array.isArray(send.attachments)) send.attachments = send.attachments.map((file) => textsIn(file));
  return send;
}

function textOf(value: unknown): unknown {
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : value;
}

function textsIn(pairs: unknown, isWanted: (name: string) => boolean = () => true): unknown {
  if (typeof pairs !== 'object' || pairs === null || Array.isArray(pairs)) return pairs;
  const wanted = Object.entries(pairs).filter(([name]) => isWanted(name));
  return Object.fromEntries(wanted.map(([name, value]) => [name, textOf(value)]));
}

function noContent({ html = 'html', text = 'text' }: Readonly<Record<string, string>>): Issue {
  const either = [...new Set([html, text])].join(' or ');
  return {
    code: 'custom',
    expected: `${either}, not empty`,
    received: 'undefined',
    path: ['html'],
    message: `${either} is required, and must not be empty`,
  };
}

/** The first step of a path, and of the message, is a name of ours; so are the members of an attachment. */
function renamed(issue: Issue, names: Readonly<Record<string, string>>): Issue {
  const count = issue.path[0] === 'attachments' ? issue.path.length : 1;
  const ours = issue.path.slice(0, count);
  const theirs = ours.map((step) => names[step] ?? step);
  const start = ours.join('.');
  const message = issue.message.startsWith(start)
    ? `${theirs.join('.')}${issue.message.slice(start.length)}`
    : issue.message;
  return { ...issue, path: [...theirs, ...issue.path.slice(count)], message };
}

/** The key of the caller; empty if there is none. */
export function idempotencyKeyOf({ context }: DialectCall): string {
  const key = context.get('idempotency-key');
  if (key.length <= maxKeyLength) return key;
  throw new Refusal('BAD_REQUEST', `Idempotency-Key must have 1 to ${maxKeyLength} characters.`, {
    reason: 'IDEMPOTENCY_KEY_INVALID',
  });
}

/** Without a key of the caller, one that nobody repeats. `position`: that of the email in a call that has several. */
export function idempotencyOfSend(
  key: string,
  send: unknown,
  position?: number,
): NonNullable<SendRequest['idempotency']> {
  const own = position === undefined ? key : `${key}:${position}`;
  if (key === '') return { key: newId(), requestHash: '' };
  return { key: own, requestHash: hash('sha256', JSON.stringify(send ?? null)) };
}
