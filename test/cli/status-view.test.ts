/** `postern status` on a terminal: a pure function from the status to lines, none wider than the terminal but commands. */
import { stripVTControlCharacters } from 'node:util';
import test from 'ava';
import { statusBlock } from '#cli/render/status-view.ts';
import type { Order } from '#operate/status/operator-orders.ts';
import type { Status } from '#operate/status/read-status.ts';

const now = Date.parse('2026-11-20T12:00:00Z');
const minute = 60_000;

const nothing: Status = {
  at: now,
  isServed: true,
  setUp: null,
  needs: [],
  folded: [],
  more: 0,
  orders: [],
  warmUps: [],
};

const order: Order = {
  kind: 'held',
  subject: null,
  since: now - 6 * 24 * 60 * minute,
  until: null,
  count: 412,
  reason: null,
  perMinute: null,
  command: 'postern queue release --status held --reason R',
};

function shown(status: Partial<Status>, columns = 80, rows = 24): string[] {
  const block = statusBlock({ ...nothing, ...status }, { columns, rows });
  const lines = 'lines' in block ? block.lines : [];
  return lines.map(stripVTControlCharacters);
}

test('without trouble the status is one line', (t) => {
  t.deepEqual(shown({}), ['All good.', '']);
});

test('before the first verified domain: the next command', (t) => {
  t.deepEqual(shown({ setUp: 'postern org create --name NAME' }), [
    'Not set up: no domain is verified.',
    '    → postern org create --name NAME',
    '',
  ]);
});

test('holds, suspensions and rules come last, each with the command that ends it', (t) => {
  const orders: Order[] = [
    order,
    {
      ...order,
      kind: 'slow',
      subject: 'mx1.big.example',
      perMinute: 30,
      since: now - 5 * minute,
      count: 1,
      command: 'postern queue resume mx1.big.example --reason R',
    },
    { ...order, kind: 'pause', subject: 'Acme', since: null, command: 'postern org resume Acme --reason R' },
  ];
  t.deepEqual(shown({ orders }).slice(1), [
    '',
    '',
    'By your order:',
    '  held mail for 6 days: 412 mails',
    '    → postern queue release --status held --reason R',
    '  slowed mx1.big.example to 30 a minute for 5 minutes: 1 mail',
    '    → postern queue resume mx1.big.example --reason R',
    '  paused Acme: 412 mails  → postern org resume Acme --reason R',
  ]);
});

test('names that others chose stay within the terminal', (t) => {
  const evil = '\u001b[2J\u009b日本語'.repeat(30);
  const need: Status['needs'][0] = {
    cause: 'unreachable',
    severity: 'watch',
    subject: evil,
    since: now,
    figure: evil,
    reply: evil,
    advice: 'Few words.',
    command: 'postern status',
    path: '',
    traffic: null,
  };
  for (const columns of [20, 80]) {
    const orders = [{ ...order, subject: evil, command: 'postern status' }];
    const lines = shown({ needs: [need], folded: [need], orders }, columns);
    t.notRegex(lines.join(''), /[\p{Cc}]/u);
    for (const line of lines) t.true(line.length <= columns, line);
  }
});
