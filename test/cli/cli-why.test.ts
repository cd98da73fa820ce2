/** `email why`, sentence by sentence: a pure function, held here for the stories that are rare on sockets. */
import test from 'ava';
import { why } from '#cli/render/why-view.ts';
import { conditionOf } from '#lab/conditions.ts';
import { table } from '#lab/table.ts';
import type { AttemptRecord } from '#mail/record/rows/emails.ts';
import type { WhyInput } from '#operate/explain/why.ts';
import type { DeliveryStatus, Fault, Verdict } from '#platform/values/glossary.ts';

const now = Date.parse('2026-11-20T12:00:00Z');
const minute = 60_000;
const when = (time: number) => `in ${(time - now) / minute} m`;

function story(status: DeliveryStatus, more: Partial<WhyInput> = {}, delivery: object = {}): WhyInput {
  const untouched = { count: 0, firstAt: null, lastAt: null, scans: 0 };
  return {
    delivery: {
      id: 'd',
      emailId: 'E',
      orgId: 'O',
      messageId: 'm',
      position: 0,
      kind: 'to',
      recipient: 'ann@there.invalid',
      domain: 'there.invalid',
      status,
      attempts: 1,
      dueAt: null,
      leaseOwner: null,
      nextAttemptAt: null,
      createdAt: now,
      updatedAt: now,
      expiresAt: now + 60 * minute,
      hasDeadline: false,
      deliveredAt: null,
      lastReply: null,
      mx: null,
      tls: null,
      bounce: null,
      opens: untouched,
      clicks: untouched,
      ...delivery,
    },
    last: null,
    withheld: null,
    action: null,
    condition: conditionOf(now),
    now,
    emailId: 'E',
    orgId: 'O',
    from: 'app@sender.invalid',
    ...more,
  };
}

function attempt(verdict: Partial<Verdict>, more: Partial<AttemptRecord> = {}): AttemptRecord {
  return {
    deliveryId: 'd',
    number: 1,
    startedAt: now,
    endedAt: now,
    reply: null,
    mx: null,
    tls: null,
    transcript: [],
    verdict: {
      outcome: 'deferred',
      category: 'network',
      fault: 'infrastructure',
      bounce: null,
      origin: 'remote',
      diagnostic: 'no answer',
      possibleDuplicate: false,
      rule: 'unreachable',
      retryAfterMs: null,
      ...verdict,
    } as Verdict,
    ...more,
  };
}

const soon = { nextAttemptAt: now + 5 * minute };
const due = { nextAttemptAt: now - minute };
const suspension = {
  kind: 'suspend' as const,
  perMinute: null,
  destination: 'mx.invalid',
  reason: 'their wish',
  createdAt: now - 10 * minute,
  until: now + 50 * minute,
};

const stories: Record<string, WhyInput> = {
  'put off by us': story(
    'deferred',
    { last: attempt({ origin: 'local', diagnostic: 'the disk is full' }) },
    soon,
  ),
  'put off by them, before its time, and suspended since': story(
    'deferred',
    { last: attempt({}), condition: conditionOf(now, { statuses: { orders: [suspension] } }) },
    soon,
  ),
  'due, and no node has the addresses': story(
    'queued',
    {
      condition: conditionOf(now, { subject: { noSource: { pools: ['bulk'], count: 1, isWhole: true } } }),
    },
    { attempts: 0, ...due },
  ),
  'due, and nobody there': story(
    'queued',
    { condition: conditionOf(now, { subject: { dueAt: now - minute }, statuses: { isServed: false } }) },
    due,
  ),
  'greylisted, before its next attempt': story(
    'deferred',
    {
      last: attempt({ category: 'greylisting', diagnostic: '450 4.2.0 Greylisted' }),
      condition: conditionOf(now, {
        subject: { greylisted: { since: now - 3 * minute, reply: '450 4.2.0 Greylisted' } },
      }),
    },
    soon,
  ),
  'of an organization that is paused': story(
    'queued',
    {
      condition: conditionOf(now, {
        subject: {
          paused: {
            count: 1,
            isWhole: true,
            pause: { since: now - 2 * minute, reason: 'unpaid bills' },
          },
        },
      }),
    },
    due,
  ),
  'held before there was an event of it': story('held'),
  'canceled after an attempt that may have arrived': story('canceled', {
    action: { at: now - minute, reason: 'typo' },
    last: attempt({ diagnostic: 'lost after the dot', possibleDuplicate: true }),
  }),
  'bounced by a blocklist that the reply names: the address and the list, no word of the domain': blocked(
    '550 5.7.1 Service unavailable, Client host [203.0.113.9] blocked using zen.spamhaus.org',
  ),
  'bounced by a list that is not known: its name and the link of the reply': blocked(
    '554 5.7.1 192.0.2.1: 203.0.113.9 is listed in bl.lists.invalid, see https://lists.invalid/q?203.0.113.9.',
  ),
  'bounced for our reputation, and no list named': blocked('554 5.7.1 rejected due to poor reputation'),
  'bounced for a DMARC record that is missing': blocked('550 5.7.40 Your email has been blocked', 'auth'),
  'bounced for a full mailbox: the address is right': blocked(
    '552 5.2.2 Mailbox full',
    'mailbox_full',
    'recipient',
  ),
};

/** Bounced with this reply. */
function blocked(line: string, category = 'blocked', fault: Fault = 'sender'): WhyInput {
  const [, code, enhanced, text] = /^(\d+) (\S+) (.*)$/.exec(line)!;
  const bounce = { type: 'soft', category, fault, diagnostic: line };
  const verdict: Partial<Verdict> = {
    outcome: 'bounced',
    category,
    fault,
    bounce: 'soft',
    diagnostic: line,
  };
  const reply = { code: Number(code), enhanced: enhanced!, text: text! };
  const mx = { host: 'mx.invalid', address: '192.0.2.1', port: 25 };
  return story('bounced', { last: attempt(verdict, { reply, mx }) }, { bounce });
}

for (const [what, said] of table<[string, string]>('cli/why')) {
  test(`why: ${what}`, (t) => t.is(why(stories[what]!, when), said));
}

test('why: what strangers wrote cannot move the cursor', (t) => {
  const evil = attempt({}, { reply: { code: 451, enhanced: null, text: '\u001b[2Jgone\r\n' } });
  t.notRegex(why(story('deferred', { last: evil }, soon), when), /\p{Cc}/u);
});
