/** Webhooks' pure parts: what comes of a try, what it makes of the endpoint, the body, the signature, the room. */
import test from 'ava';
import fc from 'fast-check';
import ms, { type StringValue } from 'ms';
import { Webhook } from 'standardwebhooks';
import { anyText, runs } from '#lab/runs.ts';
import type { EventRecord } from '#mail/record/rows/read-events.ts';
import {
  maxFailingMs,
  retryDelays,
  verdictOf,
  type WebhookVerdict,
} from '#mail/webhooks/classify-response.ts';
import { type EndpointAttempt, endpointHealthAfter } from '#mail/webhooks/endpoint-health.ts';
import { secretsOf } from '#mail/webhooks/endpoint-secrets.ts';
import { newStandardSecret, standard } from '#mail/webhooks/formats/standard-format.ts';
import { createPostingSlots } from '#mail/webhooks/posting-slots.ts';

const now = Date.UTC(2026, 10, 21);
const bodyOf = (event: EventRecord) => standard.write(event, { secrets: [], timestamp: 0 });
const answer = (status: number, retryAfter: string | null = null) => ({
  answer: { status, retryAfter, text: '' },
});
const waitAfter = (tried: Parameters<typeof verdictOf>[0], before = 0) => {
  const verdict = verdictOf(tried, before, now);
  return verdict.kind === 'again' ? verdict.dueAt - now : verdict.kind;
};

test('2xx ends a message, 410 disables the endpoint, anything else is posted again', (t) => {
  for (const status of [200, 201, 204, 299]) t.is(waitAfter(answer(status)), 'delivered', `${status}`);
  t.is(waitAfter(answer(410)), 'gone');
  for (const status of [199, 301, 304, 307, 400, 401, 404, 429, 500, 503])
    t.is(waitAfter(answer(status)), 5000, `${status}`);
  t.is(waitAfter({ answer: null }), 5000, 'no answer');
});

test('406 refuses an event for good in the format of Mailgun, and in no other', (t) => {
  const verdict = (format?: 'mailgun' | 'sendgrid') => verdictOf(answer(406, '60'), 0, now, format).kind;
  t.deepEqual([verdict('mailgun'), verdict('sendgrid'), verdict()], ['failed', 'again', 'again']);
});

test('the waits between posts are those of docs/design.md', (t) => {
  const tries = Array.from({ length: 10 }, (_, before) => waitAfter(answer(500), before));
  const schedule = ['5s', '5m', '30m', '2h', '5h', '10h', '14h', '20h', '24h'].map((each) =>
    ms(each as StringValue),
  );
  t.deepEqual(tries, [...schedule, 'failed']);
});

const asked: [retryAfter: string, wait: number][] = [
  ['90', 90_000],
  [' 90 ', 90_000],
  ['1', 5000],
  ['0', 5000],
  ['-5', 5000],
  ['soon', 5000],
  ['', 5000],
  ['99999999999999', retryDelays.at(-1)!],
  [new Date(now + 600_000).toUTCString(), 600_000],
  [new Date(now - 600_000).toUTCString(), 5000],
];

for (const [retryAfter, wait] of asked) {
  test(`Retry-After: ${JSON.stringify(retryAfter)} makes a wait of ${wait / 1000} s`, (t) => {
    t.is(waitAfter(answer(429, retryAfter)), wait);
  });
}

const tried = (verdict: WebhookVerdict, at: number): EndpointAttempt => ({
  startedAt: at,
  endedAt: at,
  verdict,
  error: 'HTTP 500',
});
const again = { kind: 'again', dueAt: 0, pausedUntil: null } as const;
const atRest = { failingSince: null, pausedUntil: null };

test('an endpoint fails from the first failure to the next success', (t) => {
  t.is(endpointHealthAfter(atRest, [tried(again, 1), tried(again, 2)]).failingSince, 1);
  t.is(
    endpointHealthAfter({ failingSince: 1, pausedUntil: 9 }, [tried({ kind: 'delivered' }, 3)]).failingSince,
    null,
  );
  t.is(
    endpointHealthAfter(atRest, [tried(again, 1), tried({ kind: 'delivered' }, 2), tried(again, 3)])
      .failingSince,
    3,
  );
});

test('it is disabled when nothing has got through for a whole schedule, and not for one message', (t) => {
  const failed = { kind: 'failed', pausedUntil: null } as const;
  t.regex(
    endpointHealthAfter({ ...atRest, failingSince: 0 }, [tried(failed, maxFailingMs)]).disable!,
    /HTTP 500/,
  );
  t.is(endpointHealthAfter({ ...atRest, failingSince: 0 }, [tried(again, maxFailingMs - 1)]).disable, null);
  t.is(endpointHealthAfter({ ...atRest, failingSince: 5 }, [tried(failed, maxFailingMs)]).disable, null);
  t.regex(endpointHealthAfter(atRest, [tried({ kind: 'gone' }, 1)]).disable!, /410/);
});

const event = (changes: Partial<EventRecord> = {}): EventRecord => ({
  position: 1,
  id: 'e',
  orgId: 'o',
  type: 'email.bounced',
  at: now,
  recipient: 'ann@there.invalid',
  data: { attempt: 1 },
  email: {
    id: 'm',
    messageId: 'x@y',
    from: 'App <app@sender.invalid>',
    subject: 'Hello',
    tags: { a: 'b' },
    isTest: false,
  },
  ...changes,
});

test('a body is type, timestamp and data', (t) => {
  t.deepEqual(JSON.parse(bodyOf(event())), {
    type: 'email.bounced',
    timestamp: '2026-11-21T00:00:00.000Z',
    data: {
      emailId: 'm',
      id: 'x@y',
      recipient: 'ann@there.invalid',
      from: 'App <app@sender.invalid>',
      subject: 'Hello',
      tags: { a: 'b' },
      attempt: 1,
    },
  });
  const ofOrg = event({ type: 'credits.low', email: null, recipient: null, data: { remaining: 5 } });
  t.deepEqual(JSON.parse(bodyOf(ofOrg)).data, { remaining: 5 });
});

test('a body is less than 20 kB and well-formed, whatever there is to tell', (t) => {
  const text = anyText(4000);
  const long = fc.tuple(text, fc.integer({ min: 1, max: 60 })).map(([each, times]) => each.repeat(times));
  fc.assert(
    fc.property(long, long, fc.array(long, { maxLength: 10 }), (subject, diagnostic, values) => {
      const tags = Object.fromEntries(values.map((value, at) => [`${at}`.repeat(64).slice(0, 64), value]));
      const body = bodyOf(
        event({
          email: { ...event().email!, subject, tags },
          data: { bounce: { diagnostic }, url: subject },
        }),
      );
      const { data } = JSON.parse(body);
      t.true(Buffer.byteLength(body) < 20_000);
      t.is(data.emailId, 'm');
      t.true(!subject.isWellFormed() || String(data.subject).isWellFormed());
    }),
    { numRuns: runs(50) },
  );
});

test('of a long text as much is told as there is room for', (t) => {
  const diagnostic = '👍'.repeat(9000);
  const told = JSON.parse(bodyOf(event({ data: { diagnostic } }))).data.diagnostic;
  t.is(told, `${'👍'.repeat(1000)}…`);
  t.is(
    JSON.parse(bodyOf(event({ data: { diagnostic: 'x'.repeat(15_000) } }))).data.diagnostic.length,
    15_000,
  );
});

test('the library verifies what we sign, with either secret while two sign', (t) => {
  const [fresh, old, strange] = [newStandardSecret(), newStandardSecret(), newStandardSecret()];
  const timestamp = Math.floor(Date.now() / 1000);
  const greeting = event({ email: { ...event().email!, subject: 'Grüße, 世界 👍' } });
  const signing = { secrets: [fresh, old], timestamp };
  const body = standard.write(greeting, signing);
  const headers = standard.headersOf(greeting.id, body, signing);
  for (const secret of [fresh, old]) t.deepEqual(new Webhook(secret).verify(body, headers), JSON.parse(body));
  t.throws(() => new Webhook(strange).verify(body, headers));
  t.throws(() => new Webhook(fresh).verify(`${body} `, headers));
});

test('after a rotation the old secret signs until its time is up', (t) => {
  const secrets = { secret: 'new', oldSecret: 'old', oldSecretUntil: 10 };
  t.deepEqual(secretsOf(secrets, 9), ['new', 'old']);
  t.deepEqual(secretsOf(secrets, 10), ['new']);
  t.deepEqual(secretsOf({ secret: 'new', oldSecret: null, oldSecretUntil: null }, 9), ['new']);
});

test('each endpoint has its own number of posts, failing ones one each and half of all together, the next in line first', (t) => {
  const room = createPostingSlots(20);
  const fine = (id: string) => ({ id, isFailing: false });
  const bad = (id: string) => ({ id, isFailing: true });
  t.deepEqual(room.share([fine('a'), fine('b')]), [
    { webhookId: 'a', limit: 16 },
    { webhookId: 'b', limit: 4 },
  ]);
  const ends = Array.from({ length: 16 }, () => room.take(fine('a')));
  t.deepEqual(room.share([fine('a'), fine('b')]), [{ webhookId: 'b', limit: 4 }]);
  for (const end of ends) end();
  t.deepEqual(room.share([fine('a'), fine('c')])[0], { webhookId: 'c', limit: 16 });
  const failing = Array.from({ length: 15 }, (_, n) => bad(`f${String(n).padStart(2, '0')}`));
  t.is(room.share(failing).length, 10);
  for (const one of failing.slice(0, 10)) room.take(one);
  t.deepEqual(room.share([...failing, fine('z')]), [{ webhookId: 'z', limit: 10 }]);
});
