/** `email why`, sentence by sentence: a pure function, held here for the stories that are rare on sockets. */
import test from 'ava';
import { why } from '../src/cli/email-why.ts';
import type { AttemptRecord } from '../src/db/emails.ts';
import type { DeliveryStatus, Verdict } from '../src/nouns.ts';
import type { Story } from '../src/waiting/why.ts';

const now = Date.parse('2026-11-20T12:00:00Z');
const minute = 60_000;
const when = (time: number) => `in ${(time - now) / minute} m`;

function story(status: DeliveryStatus, more: Partial<Story> = {}, delivery: object = {}): Story {
  const untouched = { count: 0, firstAt: null, lastAt: null, scans: 0 };
  return {
    delivery: {
      ...{ id: 'd', messageId: 'm', recipient: 'ann@there.invalid', domain: 'there.invalid', status },
      ...{ attempts: 1, nextAttemptAt: null, parkedAt: null, updatedAt: now, expiresAt: now + 60 * minute },
      ...{ deliveredAt: null, lastReply: null, mx: null, tls: null, bounce: null },
      ...{ opens: untouched, clicks: untouched },
      ...delivery,
    },
    last: null,
    order: null,
    place: { destination: 'mx.invalid', domains: ['there.invalid'], dueAt: null, stranded: null },
    condition: { is: 'ok', state: null },
    now,
    emailId: 'E',
    orgId: 'O',
    ...more,
  };
}

function attempt(verdict: Partial<Verdict>, more: Partial<AttemptRecord> = {}): AttemptRecord {
  return {
    ...{ deliveryId: 'd', number: 1, startedAt: now, endedAt: now, reply: null, mx: null, tls: null },
    transcript: [],
    verdict: {
      ...{ outcome: 'deferred', category: 'network', fault: 'infrastructure', bounce: null },
      ...{ origin: 'remote', diagnostic: 'no answer', possibleDuplicate: false },
      ...{ rule: 'unreachable', retryAfterMs: null },
      ...verdict,
    } as Verdict,
    ...more,
  };
}

const soon = { nextAttemptAt: now + 5 * minute };
const due = { nextAttemptAt: now - minute };
const suspension = {
  ...{ destination: 'mx.invalid', reason: 'their wish' },
  ...{ createdAt: now - 10 * minute, until: now + 50 * minute },
};

const rows: [what: string, story: Story, said: string][] = [
  [
    'put off by us',
    story('deferred', { last: attempt({ origin: 'local', diagnostic: 'the disk is full' }) }, soon),
    'This server itself put it off at attempt 1: the disk is full. That is not final. ' +
      'The next attempt is due in 5 m; it expires in 60 m.',
  ],
  [
    'put off by them, before its time, and suspended since',
    story('deferred', { last: attempt({}), condition: { is: 'suspended', suspension, isWhole: true } }, soon),
    'Attempt 1 failed: no answer. That is not final: the other side put it off. The next attempt is due in 5 m; it ' +
      'expires in 60 m. It waits because the operator suspended mx.invalid at in -10 m ("their wish"), until in 50 m.',
  ],
  [
    'due, and no node has the addresses',
    story(
      'queued',
      { condition: { is: 'no_source', pools: ['bulk'], count: 1, isWhole: true } },
      { attempts: 0, ...due },
    ),
    'It has not been tried yet. It waits because its organization sends from the source pool bulk, and no running ' +
      'node has an address of it. Give a node one (POSTERN_MTA_SOURCES, with @POOL), or `postern org pool O NAME` has ' +
      'it send from another pool. It expires in 60 m.',
  ],
  [
    'due, and nobody there',
    story('queued', { condition: { is: 'unattended', since: now - minute } }, due),
    'It has not been tried yet. It has been due since in -1 m, and no running server says anything of any ' +
      'destination; see that one runs. It expires in 60 m.',
  ],
  [
    'held before there was an event of it',
    story('held'),
    'It is held by the operator, until it is released (`postern queue release E --reason R`).',
  ],
  [
    'canceled after an attempt that may have arrived',
    story('canceled', {
      order: { at: now - minute, reason: 'typo' },
      last: attempt({ diagnostic: 'lost after the dot', possibleDuplicate: true }),
    }),
    'It was canceled by the operator at in -1 m ("typo"); nothing more is sent. ' +
      'Before: Attempt 1 failed: lost after the dot.',
  ],
];

for (const [what, told, said] of rows) test(`why: ${what}`, (t) => t.is(why(told, when), said));

test('why: what strangers wrote cannot move the cursor', (t) => {
  const evil = attempt({}, { reply: { code: 451, enhanced: null, text: '\u001b[2Jgone\r\n' } });
  t.notRegex(why(story('deferred', { last: evil }, soon), when), /\p{Cc}/u);
});
