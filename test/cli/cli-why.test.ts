/** `email why`, sentence by sentence: a pure function, held here for the stories that are rare on sockets. */
import test from 'ava';
import { why } from '../../src/cli/render/why-view.ts';
import type { AttemptRecord } from '../../src/db/events/emails.ts';
import type { DeliveryStatus, Outcome } from '../../src/glossary.ts';
import type { WhyInput } from '../../src/operate/explain/why.ts';
import { conditionOf } from '../lab/conditions.ts';

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

function attempt(verdict: Partial<Outcome>, more: Partial<AttemptRecord> = {}): AttemptRecord {
  return {
    deliveryId: 'd',
    number: 1,
    startedAt: now,
    endedAt: now,
    reply: null,
    mx: null,
    tls: null,
    transcript: [],
    outcome: {
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
    } as Outcome,
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

const rows: [what: string, story: WhyInput, said: string][] = [
  [
    'put off by us',
    story('deferred', { last: attempt({ origin: 'local', diagnostic: 'the disk is full' }) }, soon),
    'This server itself deferred it at attempt 1: the disk is full. That is not final. ' +
      'The next attempt is due in 5 m; it expires in 60 m.',
  ],
  [
    'put off by them, before its time, and suspended since',
    story(
      'deferred',
      { last: attempt({}), condition: conditionOf(now, { statuses: { orders: [suspension] } }) },
      soon,
    ),
    'Attempt 1 failed: no answer. That is not final: the failure is on the remote side. The next attempt is due in 5 m; it ' +
      'expires in 60 m. It waits because the operator suspended mx.invalid at in -10 m ("their wish"), until in 50 m.',
  ],
  [
    'due, and no node has the addresses',
    story(
      'queued',
      {
        condition: conditionOf(now, { subject: { noSource: { pools: ['bulk'], count: 1, isWhole: true } } }),
      },
      { attempts: 0, ...due },
    ),
    'It has not been tried yet. It waits because its organization sends from the IP pool bulk, and no running ' +
      'node has an address in it. Give a node one (POSTERN_MTA_SOURCES, with @POOL), or `postern org pool O NAME` has ' +
      'it send from another pool. It expires in 60 m.',
  ],
  [
    'due, and nobody there',
    story(
      'queued',
      { condition: conditionOf(now, { subject: { dueAt: now - minute }, statuses: { isServed: false } }) },
      due,
    ),
    'It has not been tried yet. It has been due since in -1 m, and no server is running; start one. ' +
      'It expires in 60 m.',
  ],
  [
    'greylisted, before its next attempt',
    story(
      'deferred',
      {
        last: attempt({ category: 'greylisting', diagnostic: '450 4.2.0 Greylisted' }),
        condition: conditionOf(now, {
          subject: { greylisted: { since: now - 3 * minute, reply: '450 4.2.0 Greylisted' } },
        }),
      },
      soon,
    ),
    'Attempt 1 failed: 450 4.2.0 Greylisted. That is not final: the failure is on the remote side. The next attempt is due in 5 m; ' +
      'it expires in 60 m. mx.invalid has been greylisting since in -3 m ("450 4.2.0 Greylisted"): it accepts mail ' +
      'that is retried after a while.',
  ],
  [
    'of an organization that is paused',
    story(
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
    'It has not been tried yet. It waits because the operator has paused its organization since in -2 m ("unpaid ' +
      'bills"); the pause does not count toward its maximum age. It expires in 60 m.',
  ],
  [
    'held before there was an event of it',
    story('held'),
    'It has been held by the operator until it is released (`postern queue release E --reason R`).',
  ],
  [
    'canceled after an attempt that may have arrived',
    story('canceled', {
      action: { at: now - minute, reason: 'typo' },
      last: attempt({ diagnostic: 'lost after the dot', possibleDuplicate: true }),
    }),
    'It was canceled by the operator at in -1 m ("typo"); nothing more is sent. ' +
      'Before: Attempt 1 failed: lost after the dot.',
  ],
  [
    'bounced by a blocklist that the reply names: the address and the list, no word of the domain',
    blocked('550 5.7.1 Service unavailable, Client host [203.0.113.9] blocked using zen.spamhaus.org'),
    'mx.invalid [192.0.2.1] said "550 5.7.1 Service unavailable, Client host [203.0.113.9] blocked using ' +
      'zen.spamhaus.org" at attempt 1. That is final, a soft bounce (blocked): the address 203.0.113.9 is on the ' +
      'blocklist zen.spamhaus.org: find out the reason and how to be removed at https://check.spamhaus.org/; fix the cause first.',
  ],
  [
    'bounced by a list that is not known: its name and the link of the reply',
    blocked(
      '554 5.7.1 192.0.2.1: 203.0.113.9 is listed in bl.lists.invalid, see https://lists.invalid/q?203.0.113.9.',
    ),
    'mx.invalid [192.0.2.1] said "554 5.7.1 192.0.2.1: 203.0.113.9 is listed in bl.lists.invalid, see ' +
      'https://lists.invalid/q?203.0.113.9." at attempt 1. That is final, a soft bounce (blocked): the address ' +
      '203.0.113.9 is on the blocklist bl.lists.invalid: find out the reason and how to be removed at ' +
      'https://lists.invalid/q?203.0.113.9; fix the cause first.',
  ],
  [
    'bounced for our reputation, and no list named',
    blocked('554 5.7.1 rejected due to poor reputation'),
    'mx.invalid [192.0.2.1] said "554 5.7.1 rejected due to poor reputation" at attempt 1. That is final, a soft bounce ' +
      '(blocked): the host refuses the address that this server sends from for its reputation; its reply says what it ' +
      'wants. `postern doctor` says whether it is on a blocklist.',
  ],
  [
    'bounced for a DMARC record that is missing',
    blocked('550 5.7.40 Your email has been blocked', 'auth'),
    'mx.invalid [192.0.2.1] said "550 5.7.40 Your email has been blocked" at attempt 1. That is final, a soft bounce ' +
      '(auth): the host does not trust the sender; check the DMARC record (_dmarc) of sender.invalid ' +
      'with `postern doctor sender.invalid`.',
  ],
];

/** Bounced with this reply. */
function blocked(line: string, category = 'blocked'): WhyInput {
  const [, code, enhanced, text] = /^(\d+) (\S+) (.*)$/.exec(line)!;
  const bounce = { type: 'soft', category, fault: 'sender', diagnostic: line };
  const verdict: Partial<Outcome> = {
    outcome: 'bounced',
    category,
    fault: 'sender',
    bounce: 'soft',
    diagnostic: line,
  };
  const reply = { code: Number(code), enhanced: enhanced!, text: text! };
  const mx = { host: 'mx.invalid', address: '192.0.2.1', port: 25 };
  return story('bounced', { last: attempt(verdict, { reply, mx }) }, { bounce });
}

for (const [what, told, said] of rows) test(`why: ${what}`, (t) => t.is(why(told, when), said));

test('why: what strangers wrote cannot move the cursor', (t) => {
  const evil = attempt({}, { reply: { code: 451, enhanced: null, text: '\u001b[2Jgone\r\n' } });
  t.notRegex(why(story('deferred', { last: evil }, soon), when), /\p{Cc}/u);
});
