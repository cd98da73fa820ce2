/** `postern top`: the rates by the mail log, and the picture for a terminal of any size. */
import test from 'ava';
import stringWidth from 'string-width';
import type { LogLine } from '#cli/maillog/log-filter.ts';
import { Traffic } from '#cli/maillog/traffic.ts';
import { render, type Snapshot, type Sort, sorts } from '#cli/render/top-view.ts';
import { cut, fit } from '#cli/render/width.ts';
import { conditionOf } from '#lab/conditions.ts';
import { picture } from '#lab/table.ts';
import type { QueueRow } from '#operate/explain/queue-rows-by-destination.ts';
import type { Need } from '#operate/status/need.ts';

/** On the operator's own clock. */
const now = new Date(2026, 10, 20, 12, 30, 15).getTime();
const minute = 60_000;

function line(event: string, ago: number, fields: object = {}): LogLine {
  return { time: new Date(now - ago).toISOString(), event, msg: event, destination: 'd.example', ...fields };
}

test('counts the last sixty seconds of what is accepted and what becomes of it', (t) => {
  const traffic = new Traffic();
  for (const ago of [59_000, 0, 1000, 61_000, 2 * minute]) traffic.add(line('accepted', ago));
  for (const event of ['attempted', 'else']) traffic.add(line(event, 0));
  traffic.add({ ...line('accepted', 0), time: 'no time' });
  t.deepEqual(traffic.read(now), { accepted: 3, delivered: 0, deferred: 0, bounced: 0 });
  t.is(traffic.read(now + 2 * minute).accepted, 0);
});

function queueLine(destination: string, fields: Partial<QueueRow> = {}): QueueRow {
  return {
    destination,
    domains: [destination],
    counts: { queued: 3, sending: 1, deferred: 4, held: 0 },
    parked: 2,
    ages: [1, 2, 0, 0, 4, 0, 0, 1],
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
  const circuit = { since: now, failures: 6, nextProbeAt: now + 5 * minute, reason: 'connect timed out' };
  return {
    at: now,
    hostname: 'mail.example.org',
    rates: { accepted: 1234, delivered: 1, deferred: 0, bounced: 1 },
    queue: {
      at: now,
      rows: [
        queueLine('mx.slow.example', {
          condition: conditionOf(now, { state: { circuit } }),
          lastReply: '421 4.7.0 slow down',
          nextAttemptAt: circuit.nextProbeAt,
        }),
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

test('the picture at 80 by 24 has the table of the queue summary', (t) => {
  const shown = plain(render(snapshot(), { columns: 80, rows: 24 }, manner));
  t.deepEqual(shown.slice(0, 8), picture('top-80x24'));
  t.deepEqual(shown.slice(-2), ['', ' q quit   s sort by waiting   p pause']);
});

test('the verdict and the most urgent needs come first, as many as the terminal has room for', (t) => {
  const need = { since: now - 5 * minute, reply: null, advice: '', command: '', path: '', traffic: null };
  const needs: Need[] = ['blocklisted', 'throttled', 'backup', 'slow', 'greylisting', 'hanging'].map(
    (cause) => ({
      ...need,
      cause: cause as Need['cause'],
      severity: 'act',
      subject: `mx.${cause}.example`,
      figure: '40 waiting, 12 a minute, 3 minutes to drain',
    }),
  );
  const status = {
    at: now,
    isServed: true,
    setUp: null,
    needs,
    folded: [],
    more: 0,
    orders: [],
    warmUps: [],
  };
  const head = (rows: number) =>
    plain(render(snapshot({ status }), { columns: 80, rows }, manner)).slice(1, Math.floor(rows / 8) + 3);
  t.deepEqual(head(24), picture('top-needs'));
  t.is(head(40).length, 7);
  const noneWrong = snapshot({ status: { ...status, needs: [] } });
  t.is(plain(render(noneWrong, { columns: 80, rows: 24 }, manner))[1], 'All good.');
});

test('has as many lines as the terminal, none too wide, whatever its size and whatever is in it', (t) => {
  const evil = '\u001b[2J\u009b\u202e日本語😀\r\n'.repeat(20);
  const rows = Array.from({ length: 40 }, (_, number) => queueLine(`${evil}${number}`, { lastReply: evil }));
  const full = snapshot({ hostname: evil, queue: { at: 0, rows }, problem: evil });
  for (const one of [snapshot(), full, { ...full, problem: null }]) {
    const wide = [1, 2, 20, 39, 40, 80, 250].map((columns) => ({ columns, rows: 24 }));
    const high = [1, 5, 60].map((rows) => ({ columns: 80, rows }));
    for (const size of [...wide, ...high]) {
      const shown = plain(render(one, size, { sort: 'oldest', isPaused: true }));
      t.is(shown.length, size.rows);
      const tooWide = shown.find((each) => stringWidth(each) > size.columns);
      t.is(tooWide, undefined, `${size.columns} by ${size.rows}`);
      t.notRegex(shown.join(''), /[\p{Cc}\p{Bidi_Control}]/u);
    }
  }
});

test('with more rows all is shown; sorted as asked; the queue says how old it is', (t) => {
  const old = snapshot({ queue: { ...snapshot().queue, at: now - 30_000 } });
  const shown = (sort: Sort) => plain(render(old, { columns: 100, rows: 40 }, { sort, isPaused: false }));
  const order = (sort: Sort) => shown(sort).flatMap((each) => /^(a-very|mx\.slow)/.exec(each)?.[0] ?? []);
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

test('widths', (t) => {
  t.deepEqual(
    ['abc', '日本', 'é', 'e\u0301', '😀'].map((text) => stringWidth(text)),
    [3, 4, 1, 1, 2],
  );
  t.is(cut('日本語', 5), '日本…');
  t.is(cut('日本語', 4), '日…');
  t.is(fit('日本語', 4), '日… ');
  t.is(fit('7', 3, 'right'), '  7');
});
