/** What people read of the command line: tables on a terminal, times, and when a quota renews. */
import test from 'ava';
import { renewsAt } from '#accounts/quota-period.ts';
import { organizationDocument } from '#cli/render/org-view.ts';
import { createOutput } from '#cli/render/output.ts';
import { timeOfDay } from '#cli/render/times.ts';
import { picture } from '#lab/table.ts';
import { relative, span } from '#platform/base/span.ts';

test('a terminal gets a table, its times relative, its last column cut to fit', (t) => {
  let shown = '';
  const write = (text: string) => {
    shown += text;
  };
  const stream = { isTTY: true, columns: 50, write } as unknown as NodeJS.WriteStream;
  const now = Date.parse('2026-11-20T12:00:00Z');
  const out = createOutput({ stdout: stream, stderr: stream }, () => now);
  const rows = [[5, { time: now - 185_000 }, { state: 'deferred' }, `451 \u001b[2J${'x'.repeat(80)}`]];
  out.print([], { head: ['N', 'AT', 'STATUS', 'REPLY'], rows, empty: 'Nothing.', cut: 'last' });
  t.deepEqual(shown.replace(/\u001b\[\d+m/g, '').split('\n'), picture('table-times'));
  shown = '';
  out.print([], { head: ['N'], rows: [], empty: 'Nothing.' });
  t.regex(shown, /Nothing\./);
});

test('of lines, a terminal gets our own breaks and styles, and no other control character', (t) => {
  let shown = '';
  const write = (text: string) => {
    shown += text;
  };
  const stream = { isTTY: true, columns: 50, write } as unknown as NodeJS.WriteStream;
  const out = createOutput({ stdout: stream, stderr: stream }, () => 0);
  const lines = ['\u001b[1mbold\u001b[22m\nnext', 'a \u009b2J b \u001b]0;x\u0007 c \u202e d \u001b[2J\r'];
  out.print(null, { lines, rows: [] });
  t.is(shown, '\u001b[1mbold\u001b[22m\nnext\na \\x9b2J b \\x1b]0;x\\x07 c \\u202e d \\x1b[2J\\x0d\n');
});

test('on a narrow terminal a table shows the ends of ids and cuts, and texts break between words', (t) => {
  let shown = '';
  const write = (text: string) => {
    shown += text;
  };
  const stream = { isTTY: true, columns: 60, write } as unknown as NodeJS.WriteStream;
  const out = createOutput({ stdout: stream, stderr: stream }, () => 0);
  const id = '01a1fde4-3a44-750e-831d-9eda6307a7e9';
  const rows = [[{ id }, { state: 'queued' }, `${'a'.repeat(40)}@there.invalid`, 'A subject of some length']];
  const head = ['EMAIL ID', 'STATUS', 'RECIPIENT', 'SUBJECT'];
  const plain = () => shown.replace(/\u001b\[\d+m|\u001b\[K|\r/g, '').split('\n');
  out.print([], { head, rows, empty: '', cut: 'last' });
  t.deepEqual(plain(), picture('table-narrow'));
  shown = '';
  Object.assign(stream, { columns: 160 });
  out.print([], { head, rows, empty: '', cut: 'last' });
  t.true(shown.includes(id), 'whole if there is room');
  shown = '';
  Object.assign(stream, { columns: 40 });
  out.print({}, { fields: { reason: 'a reason of some length, which does not fit in a line' } });
  out.warn('no server is running, so no mail is sent; start one');
  t.deepEqual(plain(), picture('fields-narrow'));
});

test('a text that has no room in its line stands below it, short counts above, and in a pipe all of it in one line', (t) => {
  const now = Date.parse('2026-11-20T12:00:00Z');
  const shownOn = (stream: object) => {
    let shown = '';
    const write = (text: string) => {
      shown += text;
    };
    const stdout = { ...stream, write } as unknown as NodeJS.WriteStream;
    createOutput({ stdout, stderr: stdout }, () => now).print([], {
      head: ['DESTINATION', 'TOTAL', 'HELD'],
      rows: [
        [`mx1.${'long'.repeat(9)}.invalid`, { count: 123_456 }, { count: 0 }],
        ['b', { count: 7 }, { count: 10 }],
      ],
      empty: '',
      cut: 'first',
      below: {
        head: ['', 'next', 'last reply:'],
        rows: [
          ['ok', { time: now + 60_000 }, '451 later'],
          [`busy, ${'x'.repeat(60)}`, { time: null }, null],
        ],
      },
    });
    return shown.replace(/\u001b\[\d+m/g, '').split('\n');
  };
  t.deepEqual(shownOn({ isTTY: true, columns: 40 }), picture('table-below'));
  t.deepEqual(shownOn({}), [
    `mx1.${'long'.repeat(9)}.invalid\t123456\t0\tok\t2026-11-20T12:01:00.000Z\t451 later`,
    `b\t7\t10\tbusy, ${'x'.repeat(60)}\t-\t-`,
    '',
  ]);
});

test('times as people read them', (t) => {
  const spans = [230, 1234, 90_000, 190_000, 6_000_000, 172_000_000, 173_000_000].map(span);
  t.deepEqual(spans, [
    '230 ms',
    '1.2 s',
    '90 s',
    '3 minutes',
    '1 hour 40 minutes',
    '1 day 23 hours',
    '2 days',
  ]);
  const distances = [-90_000, -59_000, 200, 3_600_000].map((ms) => relative(ms, 0));
  t.deepEqual(distances, ['90 s ago', 'just now', 'just now', 'in 1 hour']);
  const noon = new Date(2026, 10, 20, 12, 3).getTime();
  t.is(timeOfDay(noon, noon + 3_600_000), '12:03');
  t.is(timeOfDay(noon, noon + 86_400_000), '2026-11-20 12:03');
});

for (const [since, now, renewal] of [
  ['2026-01-15T08:00:00', '2026-01-15T08:00:00', '2026-02-15T08:00:00'],
  ['2026-01-15T08:00:00', '2026-02-15T07:59:59', '2026-02-15T08:00:00'],
  ['2026-01-15T08:00:00', '2026-02-15T08:00:00', '2026-03-15T08:00:00'],
  ['2026-01-31T00:00:00', '2026-02-01T00:00:00', '2026-02-28T00:00:00'],
  ['2026-01-31T00:00:00', '2026-03-01T00:00:00', '2026-03-31T00:00:00'],
  ['2028-01-31T23:59:59', '2028-02-10T00:00:00', '2028-02-29T23:59:59'],
  ['2026-11-30T12:00:00', '2031-05-30T12:00:00', '2031-06-30T12:00:00'],
]) {
  test(`a quota since ${since} renews, seen from ${now}, at ${renewal}`, (t) => {
    const at = renewsAt(Date.parse(`${since}Z`), Date.parse(`${now}Z`));
    t.is(new Date(at).toISOString(), `${renewal}.000Z`);
  });
}

test('a quota whose month is over is shown renewed, before a send makes it so', (t) => {
  const createdAt = Date.parse('2026-01-31T00:00:00Z');
  const org = {
    id: 'id',
    name: 'Acme',
    createdAt,
    quotaLimit: 100,
    quotaUsed: 70,
    quotaSince: createdAt,
    wallet: 3,
    ledgerTotal: 33,
    requestsPerSecond: 2,
    requestsPerDay: null,
    emailsPerDay: 0,
    tls: 'opportunistic' as const,
    pool: null,
    requiresSecondFactor: false,
    toldLow: false,
    toldExhausted: false,
    heldGroups: null,
    autoPause: null,
    pause: null,
  };
  const quotaAt = (time: string) => organizationDocument(org, Date.parse(time)).quota;
  t.like(quotaAt('2026-02-27T00:00:00Z'), { used: 70, remaining: 30, renewsAt: '2026-02-28T00:00:00.000Z' });
  t.like(quotaAt('2026-03-01T00:00:00Z'), { used: 0, remaining: 100, renewsAt: '2026-03-31T00:00:00.000Z' });
});
