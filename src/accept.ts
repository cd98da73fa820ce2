/**
 * A send becomes a promise: checks, compose, sign, one commit. Reads as the checklist of docs/design.md section 2; the
 * steps are below in the same order, and in compose/ and db/accept/acceptance.ts.
 *
 * Says yes after the commit alone. Says no with a Refusal; trouble of our own is a SEND_FAILED that has charged and
 * kept nothing.
 */

import { hash } from 'node:crypto';
import { allowedDomains, type Caller } from './accounts/api-keys.ts';
import { demandedTls } from './accounts/domains.ts';
import { patched } from './base/byte-patch.ts';
import type { Clock } from './base/clock.ts';
import { failpoint } from './base/failpoints.ts';
import { newId } from './base/id.ts';
import type { Attachment } from './compose/attachment.ts';
import type { Compose, ComposeOrder } from './compose/compose-order.ts';
import type { Decision } from './db/accept/acceptance.ts';
import type { Send, SendRecipient } from './db/accept/acceptance-rows.ts';
import type { SendAnswerRecord } from './db/accept/idempotency.ts';
import type { DomainRecord } from './db/accounts/domains-table.ts';
import { type Delivery, largestAtHand, type Mailbox } from './glossary.ts';
import { parseMailbox } from './mail/address.ts';
import { Refusal } from './mail/refusal.ts';
import type { DispatchPlace } from './queue/dispatcher.ts';

/** A send as the schema has let it through. */
export interface SendRequest {
  to: Recipient[];
  from: string;
  subject: string;
  html?: string;
  text?: string;
  replyTo?: string;
  attachments: Attachment[];
  headers: Record<string, string>;
  tags: Record<string, string>;
  tracking: { openTracking?: boolean; clickTracking?: boolean };
  /** The caller's idempotency key, and a hash of the whole request that goes with it. */
  idempotency: { key: string; requestHash: string } | null;
  /** X-Request-Id, for the log. */
  requestId: string;
  /** The message itself, where it was given whole; then nothing of html to headers is there. */
  rawMessage?: { raw: Buffer; messageId: string | null };
}

export interface Recipient {
  address: string;
  /** What addresses are compared by. */
  key: string;
  domain: string;
}

export interface AcceptParts {
  findDomain(orgId: string, name: string): Promise<DomainRecord | null>;
  compose: Compose;
  /** What tracking links begin with; `host`: the domain's own tracking host. */
  trackingBase(host: string | null): string;
  commit(send: Send): Promise<Decision>;
  /** What `commit` would decide, without anything being kept. */
  dryRun(send: Send): Promise<Decision>;
  /** Whether a delivery may be leased and sent at once; `settle` says after the commit what became of it. */
  admit(domain: string, orgId: string): DispatchPlace;
  /** Told after the commit, for the mail log. */
  onAccepted(send: Send, accepted: string[], requestId: string): void;
  clock: Clock;
  /** Of a mail that comes without one. */
  messageIdOf(emailId: string): string;
  maxAgeMs: number;
  /** This node's name, and how long it may hold what it leases. */
  node: string;
  leaseMs: number;
}

/** Whose send it is: a key's, or the organization's own, in the dashboard. */
type Sender = Pick<Caller, 'orgId' | 'scopes'> & { keyId: string | null };

/** `replayed`: this is the answer of an earlier send; nothing was charged or queued now. */
export type Accept = (
  request: SendRequest,
  caller: Sender,
) => Promise<{ answer: SendAnswerRecord; replayed: boolean }>;

export function createAccept(parts: AcceptParts): Accept {
  return async (request, caller) => {
    const from = requireSender(request.from);
    requireAllowedDomain(from, caller);
    const domain = requireVerified(from, await parts.findDomain(caller.orgId, from.domain));
    try {
      const draft = draftOf(parts, request, caller, domain);
      const decision = await composeSend(parts, draft, request, from, domain).then(
        (send) => commit(parts, send, request.requestId),
        async (error) => {
          // What the books say goes before trouble in composing (docs/design.md section 2, the order of checks).
          const decisionWithoutMessage = await parts.dryRun(draft);
          if ('answer' in decisionWithoutMessage && !decisionWithoutMessage.replayed) throw error;
          return decisionWithoutMessage;
        },
      );
      if ('refused' in decision) throw refusalOf(decision);
      return decision;
    } catch (error) {
      if (error instanceof Refusal) throw error;
      const message = 'The email could not be taken. Nothing was charged; try again.';
      throw new Refusal('SEND_FAILED', message, { cause: error });
    }
  };
}

function requireSender(text: string): Mailbox {
  const from = parseMailbox(text);
  if (from) return from;
  throw new Refusal(
    'BAD_REQUEST',
    `from: ${JSON.stringify(text.slice(0, 200))} is not a sender; give an address, or Name <address>`,
  );
}

function requireAllowedDomain(from: Mailbox, caller: Sender): void {
  const allowed = allowedDomains(caller);
  if (allowed.length === 0 || allowed.includes(from.domain)) return;
  throw new Refusal(
    'DOMAIN_NOT_ALLOWED',
    `This API key may not send from ${from.domain}; it may send from ${allowed.join(', ')}.`,
  );
}

function requireVerified(from: Mailbox, domain: DomainRecord | null): DomainRecord {
  if (!domain) {
    throw new Refusal(
      'DOMAIN_NOT_FOUND',
      `The domain ${from.domain} is not registered in this organization.`,
    );
  }
  if (domain.status !== 'verified') {
    throw new Refusal(
      'DOMAIN_NOT_VERIFIED',
      `The domain ${domain.name} is not verified yet: publish its DKIM record, then verify it.`,
    );
  }
  return domain;
}

/** The send without its messages: what the books need to know. */
function draftOf(parts: AcceptParts, request: SendRequest, caller: Sender, domain: DomainRecord): Send {
  const emailId = newId();
  const now = parts.clock.now();
  return {
    emailId,
    orgId: caller.orgId,
    keyId: caller.keyId,
    messageId: parts.messageIdOf(emailId),
    from: request.from,
    replyTo: request.replyTo ?? null,
    subject: request.subject,
    tags: request.tags,
    tracking: effectiveTracking(request, domain),
    tls: demandedTls(domain),
    recipients: request.to.map((one) => ({ ...one, deliveryId: newId(), message: 0, entry: 'due' })),
    messages: [{ id: newId(), raw: Buffer.alloc(0) }],
    base: null,
    trackedLinks: null,
    idempotency: request.idempotency
      ? { kind: 'key', ...request.idempotency }
      : { kind: 'window', ...duplicateWindow(request, caller) },
    acceptedAt: now,
    expiresAt: now + parts.maxAgeMs,
    lease: { node: parts.node, until: now + parts.leaseMs },
  };
}

async function composeSend(
  parts: AcceptParts,
  draft: Send,
  request: SendRequest,
  from: Mailbox,
  domain: DomainRecord,
): Promise<Send> {
  const made = await parts.compose(orderOf(parts, draft, request, from, domain));
  const { messageId, base, trackedLinks } = made;
  const messages = made.messages.map((raw) => ({ id: newId(), raw }));
  const message = (index: number) => (messages.length === 1 ? 0 : index);
  const recipients = draft.recipients.map((recipient, index) => ({ ...recipient, message: message(index) }));
  return { ...draft, messageId, messages, base, trackedLinks, recipients };
}

function orderOf(
  parts: AcceptParts,
  draft: Send,
  request: SendRequest,
  from: Mailbox,
  domain: DomainRecord,
): ComposeOrder {
  return {
    orgId: draft.orgId,
    fields: contentOf(draft, request, from),
    tracking: {
      opens: draft.tracking.openTracking,
      clicks: draft.tracking.clickTracking,
      base: parts.trackingBase(domain.trackingHost),
      deliveryIds: draft.recipients.map(({ deliveryId }) => deliveryId),
    },
    signer: signerOf(domain),
  };
}

function signerOf({ name, dkimSelector, dkimPrivateKey, otherKeys }: DomainRecord): ComposeOrder['signer'] {
  const first = { domain: name, selector: dkimSelector, sealedKey: dkimPrivateKey };
  const beside = otherKeys.find(({ status }) => status === 'signing');
  return beside ? { ...first, second: { selector: beside.selector, sealedKey: beside.privateKey! } } : first;
}

function contentOf({ messageId, acceptedAt: date }: Send, request: SendRequest, from: Mailbox) {
  const { rawMessage, replyTo, subject, html, text, attachments, headers } = request;
  if (rawMessage) return { raw: rawMessage.raw, messageId: rawMessage.messageId ?? messageId, date };
  const to = request.to.map(({ address }) => address);
  return { from, to, replyTo, subject, html, text, attachments, headers, messageId, date };
}

/**
 * The instant of acceptance, and what comes right after it: deliveries for which there is room go to the runner as
 * they are, without another look into the database.
 */
async function commit(parts: AcceptParts, send: Send, requestId: string): Promise<Decision> {
  const slots = send.recipients.map(({ domain }) => parts.admit(domain, send.orgId));
  const recipients = send.recipients.map((one, index) => ({ ...one, entry: slots[index]!.entry }));
  let accepted: string[] = [];
  try {
    failpoint('composed');
    const decision = await parts.commit({ ...send, recipients });
    failpoint('accepted');
    if ('answer' in decision && !decision.replayed) accepted = decision.answer.accepted;
    return decision;
  } finally {
    if (accepted.length > 0) parts.onAccepted(send, accepted, requestId);
    for (const [index, recipient] of recipients.entries()) {
      slots[index]!.settle(accepted.includes(recipient.address) ? deliveryOf(send, recipient) : null);
    }
  }
}

function deliveryOf(send: Send, { deliveryId, address, domain, message }: SendRecipient): Delivery {
  const { id, raw } = send.messages[message]!;
  return {
    id: deliveryId,
    emailId: send.emailId,
    orgId: send.orgId,
    messageId: id,
    recipient: address,
    domain,
    from: send.from,
    tags: send.tags,
    attempts: 0,
    createdAt: send.acceptedAt,
    dueAt: send.acceptedAt,
    expiresAt: send.expiresAt,
    tls: send.tls,
    ...inMemoryMessage(raw, send.base),
  };
}

/** A large copy is put together when its turn has come. */
function inMemoryMessage(raw: Buffer, base: Buffer | null): Pick<Delivery, 'message'> {
  if (base === null) return { message: raw };
  return base.length <= largestAtHand ? { message: patched(base, raw) } : {};
}

/** The request's word, else the domain's, for each member by itself. */
function effectiveTracking({ tracking }: SendRequest, domain: DomainRecord): Send['tracking'] {
  return {
    openTracking: tracking.openTracking ?? domain.openTracking,
    clickTracking: tracking.clickTracking ?? domain.clickTracking,
  };
}

/** docs/api.md section 4.1 rule 6: what makes two sends without a key duplicates of each other. */
function duplicateWindow(request: SendRequest, caller: Sender): { key: string; requestHash: string } {
  const recipients = request.to.map(({ key }) => key).sort();
  const key = hash('sha256', JSON.stringify([caller.keyId, recipients, request.subject]));
  return { key, requestHash: key };
}

function refusalOf(decision: Exclude<Decision, { answer: SendAnswerRecord }>): Refusal {
  switch (decision.refused) {
    case 'ALL_RECIPIENTS_SUPPRESSED':
      return new Refusal(decision.refused, 'Every recipient is on the suppression list.');
    case 'INSUFFICIENT_CREDITS':
      return new Refusal(decision.refused, 'Neither the quota nor the wallet has credits left.');
    case 'KEY_REUSED':
      return new Refusal(
        'BAD_REQUEST',
        'This idempotency key was used for another request; give each its own.',
      );
    case 'DAILY_CAPACITY': {
      const message = `The organization may send to ${decision.limit} recipients a day; these do not all fit today.`;
      return new Refusal('RATE_LIMIT_EXCEEDED', message, { retryAfterMs: decision.retryAfterMs });
    }
  }
}
