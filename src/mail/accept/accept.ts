/**
 * Accepts a send: checks, compose, sign, one commit, in the order of the checklist in docs/design.md section 2. The
 * steps are below in the same order, and in mail/compose/ and mail/accept/rows/acceptance.ts.
 *
 * It succeeds only after the commit. It refuses with a Refusal; an error of our own is a SEND_FAILED, after which nothing
 * was charged or stored.
 */

import { allowedDomains } from '#accounts/api-keys.ts';
import { demandedTls, mailTls } from '#accounts/domains.ts';
import type { DomainRecord } from '#accounts/rows/domains-table.ts';
import type { Stream } from '#accounts/rows/streams.ts';
import {
  effectiveTracking,
  requireAllowedDomain,
  requireSender,
  requireVerified,
  signerOf,
} from '#accounts/sender.ts';
import type { Decision } from '#mail/accept/rows/acceptance.ts';
import { refusalOf } from '#mail/accept/rows/decision-refusal.ts';
import type { Compose, ComposeOrder } from '#mail/compose/compose-order.ts';
import { fieldValue, readHead } from '#mail/compose/head.ts';
import { patched } from '#platform/base/byte-patch.ts';
import type { Clock } from '#platform/base/clock.ts';
import { failpoint } from '#platform/base/failpoints.ts';
import { newId } from '#platform/base/id.ts';
import type { Send } from '#platform/database/tables/send-record.ts';
import { parseMailbox } from '#platform/values/address.ts';
import { type Mailbox, serverOrgId } from '#platform/values/glossary.ts';
import { namesOf } from '#platform/values/recipients.ts';
import { asRefusal, type Refusal } from '#platform/values/refusal.ts';
import { sendTimesRefusal } from '#platform/values/send-times.ts';
import { testDomain, testMaxAge, testRoute } from '#platform/values/test-route.ts';
import { type AfterCommit, type RequestLog, startCommit } from './commit.ts';
import { repeatKeyOf } from './repeat-key.ts';
import type { Sender, SendRequest } from './requested-send.ts';
import { type SendStreamParts, streamOf, subscriptionOf, withBulkNote } from './send-stream.ts';

/** Each endpoint has a lower limit of its own; this one bounds what a commit and a message's header can hold. */
const maxRecipients = 1000;

export interface AcceptParts extends AfterCommit, SendStreamParts {
  findDomain(orgId: string, name: string): Promise<DomainRecord | null>;
  /** The first domains of the organization, for a refusal. */
  domainNames(orgId: string): Promise<string[]>;
  /** The domain that test mail can come from without a domain of one's own. */
  testSender(): Promise<DomainRecord>;
  compose: Compose;
  /** The URL that tracking links start with; `host` is the domain's own tracking host. */
  trackingBase(host: string | null): string;
  /** Seals the message of the server's own mail (accounts/seal.ts). */
  sealMessage(packed: Buffer): Buffer;
  commit(send: Send): Promise<Decision>;
  /** Decides as `commit` would, but stores nothing. */
  dryRun(send: Send): Promise<Decision>;
  clock: Clock;
  /** Whether HTML without a text gets one. */
  textFromHtml: boolean;
  /** The Message-ID of an email that comes without one. */
  messageIdOf(emailId: string): string;
  /** Feedback-ID (feedback-id.ts). */
  feedbackIdOf(send: Pick<Send, 'orgId' | 'stream' | 'tags'>): string;
  maxAgeMs: number;
  /** Everything that is sent is test mail (platform/values/test-route.ts). */
  allIsTest: boolean;
  /** This node's name and the duration of its leases. */
  node: string;
  leaseMs: number;
}

/** `replayed`: the answer is that of an earlier send; nothing was charged or queued now. `heldBy`: an auto-pause holds the mail. */
export type Accepted = Extract<Decision, { replayed: boolean }>;

export type Accept = (request: SendRequest, caller: Sender) => Promise<Accepted>;

export function createAccept(parts: AcceptParts): Accept {
  return (request, caller) =>
    orSendFailed(async () => {
      const ready = await prepareSend(parts, request, caller);
      if (!('send' in ready)) return ready;
      return answered(await commit(parts, ready.send, ready.request), request);
    });
}

/** A composed send that is to be committed, or the answer of a repeat. Throws what else decides it. */
export async function prepareSend(
  parts: Omit<AcceptParts, 'commit'>,
  request: SendRequest,
  caller: Sender,
): Promise<{ send: Send; request: SendRequest } | Accepted> {
  const checked = await check(parts, request, caller);
  const { draft, refusal } = checked;
  if (refusal) return replayOr(refusal, await parts.dryRun(draft));
  const { attachments } = request;
  if (typeof attachments === 'function') {
    // Neither a repeat nor a send that would be refused makes us fetch anything.
    const decision = answered(await parts.dryRun(draft), request);
    if (decision.replayed) return decision;
    // Everything is checked again, because the fetch takes time.
    return prepareSend(parts, { ...request, attachments: await attachments() }, caller);
  }
  try {
    return { send: await composeSend(parts, checked), request: checked.request };
  } catch (error) {
    // Refusals of the commit come before an error in composing (docs/design.md section 2, the order of checks).
    const decision = answered(await parts.dryRun(draft), request);
    if (!decision.replayed) throw error;
    return decision;
  }
}

/** The message is that of the first recipient; with tracking, each has a copy. */
export type DryRun = (request: SendRequest, caller: Sender) => Promise<Accepted & { message: Buffer }>;

/** Every check and the composing of a send. Nothing is charged, stored or sent, nor is the idempotency key taken. */
export function createDryRun(parts: Omit<AcceptParts, 'commit'>): DryRun {
  return (request, caller) =>
    orSendFailed(async () => {
      const checked = await check(parts, request, caller);
      const decision = await parts.dryRun(checked.draft);
      const accepted = answered(checked.refusal ? replayOr(checked.refusal, decision) : decision, request);
      const { attachments } = request;
      const fetched = typeof attachments === 'function' ? await attachments() : attachments;
      const whole = { ...checked, request: { ...request, attachments: fetched } };
      const { base, messages } = await composeSend(parts, whole);
      const { bytes } = messages[0]!;
      return { ...accepted, message: base === null ? bytes : patched(base, bytes) };
    });
}

async function orSendFailed<Answer>(accept: () => Promise<Answer>): Promise<Answer> {
  try {
    return await accept();
  } catch (error) {
    throw asRefusal(error);
  }
}

/** A send that has passed the checks that need no commit. */
interface CheckedSend {
  request: SendRequest;
  from: Mailbox;
  domain: DomainRecord;
  stream: Stream | null;
  draft: Send;
  /** A time that is not valid (any more). It is refused, unless the send repeats an earlier one. */
  refusal: Refusal | null;
}

type CheckParts = Pick<
  AcceptParts,
  | 'findDomain'
  | 'domainNames'
  | 'findStream'
  | 'testSender'
  | 'clock'
  | 'maxAgeMs'
  | 'messageIdOf'
  | 'allIsTest'
  | 'node'
  | 'leaseMs'
>;
type ComposeParts = Pick<
  AcceptParts,
  'compose' | 'feedbackIdOf' | 'trackingBase' | 'unsubscribeDomain' | 'textFromHtml' | 'sealMessage'
>;

async function check(parts: CheckParts, request: SendRequest, caller: Sender): Promise<CheckedSend> {
  const refusal = sendTimesRefusal(request, parts.clock.now(), parts.maxAgeMs);
  if (refusal && !request.idempotency) throw refusal;
  const from = requireSender(request.from);
  requireAllowedDomain(from, caller);
  requireAllowedSenderField(request, caller);
  const orgId = caller.domainOrgId ?? caller.orgId;
  const isFromTestDomain = isTestSend(parts, caller) && from.domain === testDomain;
  const domain = isFromTestDomain
    ? await parts.testSender()
    : await requireVerified(from, await parts.findDomain(orgId, from.domain), () => parts.domainNames(orgId));
  if (request.recipients.length > maxRecipients) {
    throw new RangeError(`an email has at most ${maxRecipients} recipients`);
  }
  const stream = await streamOf(parts, request, caller);
  const draft = draftOf(parts, request, caller, { domain, stream });
  return { request: withBulkNote(request, stream), from, domain, stream, draft, refusal };
}

/** RFC 5322 section 3.6.2: Sender names who has sent the mail, and mail programs show it before From. */
function requireAllowedSenderField({ headers, rawMessage }: SendRequest, caller: Sender): void {
  if (allowedDomains(caller).length === 0) return;
  const [, field] = Object.entries(headers).find(([name]) => name.toLowerCase() === 'sender') ?? [];
  const value = (rawMessage ? fieldValue(readHead(rawMessage.raw), 'sender') : field)?.trim();
  if (!value) return;
  requireAllowedDomain(
    parseMailbox(value) ?? { name: '', address: value, domain: value.slice(0, 100) },
    caller,
  );
}

/** A retry with the same idempotency key gets its answer, even if its `scheduledAt` has passed meanwhile. */
function replayOr(refusal: Refusal, decision: Decision) {
  if ('answer' in decision && decision.replayed) return decision;
  throw refusal;
}

const notComposed = [{ id: '', bytes: Buffer.alloc(0) }];

function isTestSend({ allIsTest }: Pick<CheckParts, 'allIsTest'>, { isTest }: Sender): boolean {
  return allIsTest || isTest === true;
}

/** The send without its messages: enough to decide about credits, suppression and idempotency. */
function draftOf(
  parts: CheckParts,
  request: SendRequest,
  caller: Sender,
  { domain, stream }: Pick<CheckedSend, 'domain' | 'stream'>,
): Send {
  const emailId = newId();
  const now = parts.clock.now();
  const { scheduledAt = null, expiresAfter } = request;
  const isTest = isTestSend(parts, caller);
  const maxAgeMs = isTest ? testMaxAge(parts.maxAgeMs) : parts.maxAgeMs;
  const ageMs = expiresAfter === undefined ? maxAgeMs : expiresAfter * 1000;
  return {
    emailId,
    orgId: caller.orgId,
    keyId: caller.keyId,
    dialect: caller.dialect ?? null,
    isTest,
    messageId: parts.messageIdOf(emailId),
    from: request.from,
    replyTo: request.replyTo?.map(({ address }) => address).join(', ') ?? null,
    subject: request.subject,
    tags: request.tags,
    stream: stream?.name ?? null,
    streamLimit: stream?.emailsPerDay ?? null,
    tracking: effectiveTracking(request.tracking, stream, domain),
    tls: mailTls(demandedTls(domain), request.tlsRequired),
    mustAffordAll: request.mustAffordAll,
    mustReach: request.mustReach ?? (request.rawMessage ? 'any' : 'to'),
    recipients: request.recipients.map(({ kind, name, address, key, domain: own }) => ({
      kind,
      name,
      address,
      key,
      domain: isTest ? testRoute : own,
      deliveryId: newId(),
      message: 0,
      startState: startStateAt(scheduledAt),
    })),
    messages: notComposed,
    base: null,
    packed: null,
    trackedLinks: null,
    idempotency: repeatKeyOf(request, {
      keyId: caller.keyId,
      emailId,
      isTest,
      // Nothing says that a whole message is a repeat of another one, even if it is equal; nor is a second link the first.
      isUnique: request.rawMessage !== undefined || caller.orgId === serverOrgId,
    }),
    acceptedAt: now,
    isInBatch: request.isInBatch,
    isServer: caller.orgId === serverOrgId,
    scheduledAt,
    expiresAt: (scheduledAt ?? now) + ageMs,
    hasDeadline: expiresAfter !== undefined,
    lease: { node: parts.node, until: now + parts.leaseMs },
  };
}

const startStateAt = (scheduledAt: number | null) => (scheduledAt === null ? 'due' : 'scheduled');

/**
 * Completes the draft: a send has thirty members, and copies of it are a good part of what a mail leaves to the garbage
 * collector.
 */
async function composeSend(parts: ComposeParts, checked: CheckedSend): Promise<Send> {
  const { draft: send } = checked;
  const composed = await parts.compose(orderOf(parts, checked));
  send.messageId = composed.messageId;
  send.messages = composed.messages.map((bytes) => ({ id: newId(), bytes }));
  send.base = composed.base;
  send.packed = send.isServer ? parts.sealMessage(composed.packed!) : composed.packed;
  send.trackedLinks = composed.trackedLinks;
  const hasCopies = send.messages.length > 1;
  for (const [index, recipient] of send.recipients.entries()) recipient.message = hasCopies ? index : 0;
  return send;
}

function orderOf(parts: ComposeParts, { draft, request, from, domain, stream }: CheckedSend): ComposeOrder {
  return {
    orgId: draft.orgId,
    fields: contentOf(parts, draft, request, from),
    tracking: {
      opens: draft.tracking.openTracking,
      clicks: draft.tracking.clickTracking,
      base: parts.trackingBase(domain.trackingHost),
      deliveryIds: draft.recipients.map(({ deliveryId }) => deliveryId),
    },
    subscription: stream?.kind === 'subscribed' ? subscriptionOf(parts, draft) : null,
    signer: signerOf(domain),
  };
}

function contentOf(
  { textFromHtml, feedbackIdOf }: ComposeParts,
  draft: Send,
  request: SendRequest,
  from: Mailbox,
) {
  const { emailId, messageId } = draft;
  const date = draft.scheduledAt ?? draft.acceptedAt;
  const feedbackId = feedbackIdOf(draft);
  const { rawMessage, replyTo, subject, html, amp, text, headers } = request;
  const attachments = typeof request.attachments === 'function' ? [] : request.attachments;
  if (rawMessage) {
    const { raw, received: how } = rawMessage;
    const received = how && `${how} id ${emailId}`;
    return { raw, messageId: rawMessage.messageId ?? messageId, date, received, feedbackId };
  }
  return {
    from,
    to: namesOf(request.recipients, 'to'),
    cc: namesOf(request.recipients, 'cc'),
    replyTo,
    subject,
    html,
    amp,
    text,
    textFromHtml,
    attachments,
    headers,
    messageId,
    feedbackId,
    date,
  };
}

/** The instant of acceptance (commit.ts). */
async function commit(parts: AcceptParts, send: Send, request: RequestLog): Promise<Decision> {
  const started = startCommit(parts, send, request);
  let decision: Decision | null = null;
  try {
    failpoint('composed');
    decision = await parts.commit(send);
    failpoint('accepted');
    return decision;
  } finally {
    started.settle(decision);
  }
}

/** With recipients in other lists, those in `to` decide (see `mustReach`). */
function requiredList({ recipients, rawMessage, mustReach }: SendRequest): string {
  return rawMessage || mustReach === 'any' || recipients.every(({ kind }) => kind === 'to') ? '' : ' in to';
}

export function answered(decision: Decision, request: SendRequest): Accepted {
  if ('refused' in decision) throw refusalOf(decision, requiredList(request));
  return decision;
}
