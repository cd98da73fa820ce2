/** `postern top`: what the log's lines come to, and the picture for a terminal of any size. */
import test from 'ava';
import stringWidth from 'string-width';
import type { LogLine } from '../../src/cli/maillog/log-filter.ts';
import { Traffic } from '../../src/cli/maillog/traffic.ts';
import { sparkline } from '../../src/cli/render/sparkline.ts';
import { render, type Snapshot, sorts } from '../../src/cli/render/top-view.ts';
import { cut, fit } from '../../src/cli/render/width.ts';
import type { QueueRow } from '../../src/operate/explain/queue-rows-by-destination.ts';
import type { Need } from '../../src/operate/status/need.ts';
import { conditionOf } from '../lab/conditions.ts';

/** On the operator's own clock. */
const now = new Date(2026, 10, 20, 12, 30, 15).getTime();
const minute = 60_000;

function line(event: string, ago: number, fields: object = {}): LogLine {
  return { time: new Date(now - ago).toISOString(), event, msg: event, destination: 'd.example', ...fields };
}

test('counts the last sixty seconds, and whole minutes as far as they are known', (t) => {
  const traffic = new Traffic();
  traffic.coversSince(now - 4 * minute);
  for (const ago of [0, 1000, 59_000, 61_000, 2 * minute]) traffic.add(line('accepted', ago));
  for (const event of ['attempted', 'else']) traffic.add(line(event, 0));
  traffic.add({ ...line('accepted', 0), time: 'no time' });
  const { accepted, bounced } = traffic.read(now).rates;
  t.is(accepted.perMinute, 3);
  t.deepEqual(accepted.minutes.slice(-5), [null, null, 0, 1, 2]);
  t.deepEqual([bounced.perMinute, bounced.minutes.at(-1)], [0, 0]);
  t.is(traffic.read(now + 2 * minute).rates.accepted.perMinute, 0);
});

test('tells the slow destinations of five minutes, the slowest first', (t) => {
  const traffic = new Traffic();
  const took = (destination: string, ms: number, ago = 1000) =>
    traffic.add(line('delivered', ago, { destination, ms }));
  took('fast.example', 10);
  took('slow.example', 3000);
  took('slow.example', 1000, 2 * minute);
  took('past.example', 9000, 10 * minute);
  t.deepEqual(traffic.read(now).slowest, [
    { destination: 'slow.example', attempts: 2, meanMs: 2000, worstMs: 3000 },
    { destination: 'fast.example', attempts: 1, meanMs: 10, worstMs: 10 },
  ]);
});

test('of what goes well the last reply of each host, of trouble each once and how often; a bounded number', (t) => {
  const traffic = new Traffic();
  const said = (event: string, ago: number, reply: string) =>
    traffic.add(line(event, ago, { host: 'mx.d.example', reply }));
  said('delivered', 1000, '250 two');
  said('delivered', 2000, '250 one');
  said('deferred', 3000, '451 later');
  said('deferred', 4000, '451 later');
  const seen = traffic.read(now).replies.map(({ verb, reply, times }) => [verb, reply, times]);
  t.deepEqual(seen, [
    ['delivered', '250 two', 2],
    ['deferred', '451 later', 2],
  ]);
  for (let number = 0; number < 5000; number++) said('bounced', number, `550 ${number}`);
  t.is(traffic.read(now).replies.length, 200);
  t.is(traffic.read(now).replies[0]!.reply, '550 0');
});

function queueLine(destination: string, fields: Partial<QueueRow> = {}): QueueRow {
  return {
    destination,
    domains: [destination],
    counts: { queued: 3, sending: 1, deferred: 4, held: 0 },
    parked: 2,
    ages: [],
    oldestAt: now - 130 * minute,
    dueAt: null,
    lastReply: null,
    lastReplyAt: null,
    state: null,
    nextAttemptAt: null,
    condition: conditionOf(now),
    ...fields,
  };
}

function snapshot(fields: Partial<Snapshot> = {}): Snapshot {
  const traffic = new Traffic();
  traffic.coversSince(now - 30 * minute);
  for (let ago = 0; ago < 30 * minute; ago += 1000 + (ago >> 10)) traffic.add(line('accepted', ago));
  traffic.add(
    line('delivered', 0, { ms: 1234, host: 'mx.d.example', reply: '250 2.0.0 Ok: queued as 4711' }),
  );
  traffic.add(line('bounced', 5000, { ms: 12, host: 'mx.e.example', reply: '550 5.1.1 Nobody' }));
  const circuit = { since: now, failures: 6, nextProbeAt: now + 5 * minute, reason: 'connect timed out' };
  return {
    at: now,
    hostname: 'mail.example.org',
    ...traffic.read(now),
    queue: {
      at: now,
      lines: [
        queueLine('mx.slow.example', { condition: conditionOf(now, { state: { circuit } }) }),
        queueLine('a-very-long-name-of-a-host.example', { parked: 12_345, oldestAt: now - 2000 }),
      ],
    },
    status: null,
    isServed: true,
    problem: null,
    ...fields,
  };
}

const plain = (lines: string[]) => lines.map((each) => each.replace(/\u001b\[\d+m/g, ''));
const manner = { sort: sorts[0], isPaused: false };

test('the picture at 80 by 24', (t) => {
  t.deepEqual(plain(render(snapshot(), { columns: 80, rows: 24 }, manner)), [
    ' Postern  mail.example.org   16 in the queue, 12,347 due, oldest 2 h … 12:30:15 ',
    '           a minute  last 45 minutes                                   peak',
    'accepted         58                  ▄▄▄▄▄▅▅▅▅▅▅▅▅▅▅▆▆▆▆▆▆▇▇▇▇▇███       58',
    'delivered         1                  ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁        1',
    'deferred          0                  ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁        0',
    'bounced           1                  ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁        1',
    '',
    'DESTINATION            WAIT  DUE SEND   OLDEST  STATE',
    'a-very-long-name-of-a…    7  12K    1      2 s  ok',
    'mx.slow.example           7    2    1 2 h 10 m  unreachable since 12:30: connec…',
    '',
    'SLOWEST, 5 MINUTES                                      MEAN     WORST  ATTEMPTS',
    'd.example                                             623 ms     1.2 s         2',
    '',
    'LAST REPLIES',
    '12:30:15 delivered mx.d.example  250 2.0.0 Ok: queued as 4711',
    '12:30:10 bounced   mx.e.example  550 5.1.1 Nobody',
    '',
    '',
    '',
    '',
    '',
    '',
    ' q quit   s sort by waiting   p pause',
  ]);
});

test('without mail there is one line in place of the rates', (t) => {
  const quiet = snapshot({ ...new Traffic().read(now), status: null });
  const lines = plain(render(quiet, { columns: 80, rows: 24 }, manner));
  t.deepEqual(lines.slice(1, 4), ['No mail in the last 45 minutes.', '', lines[3]]);
  t.regex(lines[3]!, /^DESTINATION/);
});

test('the verdict and the most urgent needs come first, as many as the terminal has room for', (t) => {
  const need = { since: now - 5 * minute, reply: null, advice: '', command: '', path: '', traffic: null };
  const needs: Need[] = ['blocklisted', 'throttled', 'backup', 'slow', 'greylisting', 'hanging'].map(
    (cause) => ({
      ...need,
      cause: cause as Need['cause'],
      severity: 'act',
      subject: `mx.${cause}.example`,
      figure: '40 waiting, 12 a minute, 3 m to drain',
    }),
  );
  const status = { at: now, isServed: true, setUp: null, needs, folded: [], more: 0, orders: [] };
  const head = (rows: number) =>
    plain(render(snapshot({ status }), { columns: 80, rows }, manner)).slice(1, Math.floor(rows / 8) + 3);
  t.deepEqual(head(24), [
    '6 problems need action.  all: postern status',
    '✗ blocklisted  mx.blocklisted.example  for 5 m: 40 waiting, 12 a minute, 3 m to…',
    '✗ throttled    mx.throttled.example  for 5 m: 40 waiting, 12 a minute, 3 m to d…',
    '✗ backup       mx.backup.example  for 5 m: 40 waiting, 12 a minute, 3 m to drain',
    '',
  ]);
  t.is(head(40).length, 7);
  const noneWrong = snapshot({ status: { ...status, needs: [] } });
  t.is(plain(render(noneWrong, { columns: 80, rows: 24 }, manner))[1], 'All good.');
});

test('has as many lines as the terminal, none too wide, whatever its size and whatever is in it', (t) => {
  const evil = '\u001b[2J\u009b\u202e日本語😀\r\n'.repeat(20);
  const lines = Array.from({ length: 40 }, (_, number) => queueLine(`${evil}${number}`));
  const traffic = new Traffic();
  for (let number = 0; number < 50; number++)
    traffic.add(
      line('deferred', number, { host: evil + number, destination: evil + number, reply: evil, ms: 1e9 }),
    );
  const full = snapshot({ ...traffic.read(now), hostname: evil, queue: { at: 0, lines }, problem: evil });
  for (const picture of [snapshot(), full, { ...full, problem: null }]) {
    for (const columns of [1, 2, 20, 39, 40, 80, 250]) {
      for (const rows of [1, 5, 24, 60]) {
        const shown = plain(render(picture, { columns, rows }, { sort: 'oldest', isPaused: true }));
        t.is(shown.length, rows);
        const wide = shown.find((each) => stringWidth(each) > columns);
        t.is(wide, undefined, `${columns} by ${rows}`);
        t.notRegex(shown.join(''), /[\p{Cc}\p{Bidi_Control}]/u);
      }
    }
  }
});

test('with more rows all is shown; sorted as asked; the queue says how old it is', (t) => {
  const old = snapshot({ queue: { ...snapshot().queue, at: now - 30_000 } });
  const shown = (sort: (typeof sorts)[number]) =>
    plain(render(old, { columns: 100, rows: 40 }, { sort, isPaused: false }));
  const order = (sort: (typeof sorts)[number]) =>
    shown(sort).flatMap((each) => /^(a-very|mx\.slow)/.exec(each)?.[0] ?? []);
  t.deepEqual(order('oldest'), ['mx.slow', 'a-very']);
  t.deepEqual(order('due'), ['a-very', 'mx.slow']);
  t.regex(shown('due').at(-1)!, /s sort by due .*queue as of 30 s ago/);
});

test('the keys are shown while no server runs and while the queue cannot be read', (t) => {
  const footer = (fields: Partial<Snapshot>, isPaused = false) =>
    plain(render(snapshot(fields), { columns: 90, rows: 24 }, { sort: 'due', isPaused })).at(-1);
  t.is(
    footer({ isServed: false }),
    ' q quit   s sort by due   p pause   no server is running: no mail is sent',
  );
  t.is(
    footer({ isServed: false, problem: 'the database is locked' }, true),
    ' PAUSED  q quit   s sort by due   p go on   the database is locked',
  );
});

test('sparklines and widths', (t) => {
  t.is(sparkline([null, 0, 1, 50, 100], 100), ' ▁▂▅█');
  t.is(sparkline([0, 0], 0), '▁▁');
  t.deepEqual(
    ['abc', '日本', 'é', 'e\u0301', '😀'].map((text) => stringWidth(text)),
    [3, 4, 1, 1, 2],
  );
  t.is(cut('日本語', 5), '日本…');
  t.is(cut('日本語', 4), '日…');
  t.is(fit('日本語', 4), '日… ');
  t.is(fit('7', 3, 'right'), '  7');
});
