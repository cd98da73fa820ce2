/**
 * A send as the accepting commit takes it (src/mail/accept/rows/acceptance.ts), and an attempt as an outcome is recorded from
 * it.
 */
import { v7 as uuid } from 'uuid';
import type { Send } from '#platform/database/tables/send-record.ts';
import type { Attempt, Verdict } from '#platform/values/glossary.ts';
import { minute, now } from './database/queue-rows.ts';

export const leaseMs = 3 * minute;

export function sendOf(orgId: string, bytes: Buffer = Buffer.from('Subject: Hello')): Send {
  const address = 'bob@there.invalid';
  return {
    emailId: uuid(),
    orgId,
    keyId: null,
    dialect: null,
    isTest: false,
    messageId: uuid(),
    from: 'app@sender.invalid',
    replyTo: null,
    subject: 'Hello',
    tags: {},
    tls: 'opportunistic',
    tracking: { openTracking: false, clickTracking: false },
    mustReach: 'to',
    recipients: [
      {
        deliveryId: uuid(),
        kind: 'to',
        name: '',
        address,
        key: address,
        domain: 'there.invalid',
        message: 0,
        startState: 'leased',
      },
    ],
    messages: [{ id: uuid(), bytes }],
    base: null,
    packed: bytes,
    trackedLinks: null,
    idempotency: { kind: 'window', key: uuid(), requestHash: 'hash' },
    acceptedAt: now,
    scheduledAt: null,
    expiresAt: now + 60 * minute,
    hasDeadline: false,
    lease: { node: 'node', until: now + leaseMs },
  };
}

export function attemptOf(
  verdict: Pick<Verdict, 'outcome' | 'diagnostic'> & Partial<Verdict>,
  at = now,
): Attempt {
  return {
    destination: 'mx1.invalid',
    signal: 'working',
    startedAt: at,
    endedAt: at,
    verdict: {
      category: null,
      fault: null,
      bounce: null,
      origin: 'remote',
      possibleDuplicate: false,
      rule: null,
      retryAfterMs: null,
      ...verdict,
    },
    reply: null,
    mx: null,
    tls: null,
    transcript: [],
  };
}
