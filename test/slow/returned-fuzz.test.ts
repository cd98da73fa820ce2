/**
 * Mutated golden mails: whatever they say, reading ends soon, in a reading that is one, and no delivery but the one that
 * the address names is ever credited. Two thousand in every run; `FUZZ_RUNS=20000 npm test -- test/slow/returned-fuzz.test.ts`.
 */
import test from 'ava';
import fc from 'fast-check';
import { manualClock } from '#lab/clock.ts';
import { goldenDelivery, goldenDomain, goldenMails, goldenSecret } from '#lab/golden.ts';
import { column } from '#lab/table.ts';
import { BounceHandler } from '#mail/returned/bounce-handler.ts';
import { createDeliveryOf } from '#mail/returned/complaint-tokens.ts';
import { readMail } from '#mail/returned/parse/parse-bounce.ts';
import { textBounceRules } from '#mail/returned/parse/text-bounce.ts';
import type { ParseResult } from '#mail/returned/parse-result.ts';
import { createReturnPath, createReturnPathReader } from '#mail/returned/return-path.ts';
import type { BounceResult, IncomingBounce } from '#mail/returned/rows/record-bounces.ts';
import { createServiceAddressReader } from '#mail/returned/service-addresses.ts';
import { fixedSecrets } from '#platform/base/secrets.ts';
import { createMessageIdReader } from '#platform/values/message-id.ts';

const runs = Number(process.env.FUZZ_RUNS ?? 2000);
/** Of this thread's own time, however busy the machine is with other tests. */
const soonMs = 1000;

function cpuMsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

const golden = goldenMails();
const others = Array.from({ length: 8 }, (_, n) => `01a1fde4-3a44-750e-831d-${String(n).padStart(12, '0')}`);
const returnPathOf = createReturnPath(fixedSecrets(goldenSecret), goldenDomain);

/** What is spliced in: the likes of what the readers look for, and return paths that are somebody else's. */
const splices = fc.oneof(
  // With a wrong tag, in the form of today and in that of before.
  fc.constantFrom(...others.map((id) => returnPathOf(id).replace(/[0-9a-v]{10}@/, '0123456789@'))),
  fc.constantFrom(...others.map((id) => `b-${id.replaceAll('-', '')}-0123456789abcdef@${goldenDomain}`)),
  fc.constantFrom(
    'Final-Recipient: rfc822; x@example.org\r\nAction: failed\r\nStatus: 5.1.1\r\n\r\n',
    'Content-Type: message/delivery-status\r\n\r\n',
    'Content-Type: multipart/mixed; boundary="a"\r\n\r\n--a\r\n',
    'Content-Transfer-Encoding: base64\r\n',
    'Feedback-Type: abuse\r\n',
    'X-Failed-Recipients: x@example.org\r\n',
    'Hi. This is the qmail-send program at x.\r\n',
    '\r\n\r\n',
    '--',
    '\0',
    '=?utf-8?q?=00=ff?=',
    '550 5.1.1 ',
    '<!DOCTYPE x [<!ENTITY a "b">]>',
  ),
  fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
);

type Change = { at: number; length: number; what: string; kind: 'insert' | 'delete' | 'repeat' | 'swap' };

const change: fc.Arbitrary<Change> = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  length: fc.integer({ min: 1, max: 200 }),
  what: splices,
  kind: fc.constantFrom('insert', 'delete', 'repeat', 'swap'),
});

function mutate(text: string, { at, length, what, kind }: Change): string {
  const from = Math.floor(at * text.length);
  const [before, piece, after] = [
    text.slice(0, from),
    text.slice(from, from + length),
    text.slice(from + length),
  ];
  switch (kind) {
    case 'insert':
      return before + what + piece + after;
    case 'delete':
      return before + after;
    case 'repeat':
      return before + piece.repeat(20) + after;
    case 'swap':
      return before + what.slice(0, length) + after;
  }
}

const mutated = fc
  .tuple(fc.nat(golden.length - 1), fc.array(change, { minLength: 1, maxLength: 8 }))
  .map(([index, changes]) => {
    const { role, raw } = golden[index]!;
    return { role, raw: Buffer.from(changes.reduce(mutate, raw.toString('latin1')), 'latin1') };
  });

const kinds = new Set(['failed', 'delayed', 'arrived', 'automatic', 'complaint', 'report', 'letter']);

function isSound(reading: ParseResult): boolean {
  if (!kinds.has(reading.kind) || JSON.stringify(reading).length > 128 * 1024) return false;
  if (reading.kind !== 'failed') return true;
  const { type, category, diagnostic } = reading.bounce;
  return /^(hard|soft)$/.test(type) && category !== '' && diagnostic !== '' && diagnostic.length <= 1100;
}

test.serial('a mutated mail is read, soon, and the reading is sound', async (t) => {
  t.timeout(300_000);
  await fc.assert(
    fc.asyncProperty(mutated, async ({ raw, role }) => {
      const started = process.threadCpuUsage();
      const reading = await readMail(raw, role);
      const ms = cpuMsSince(started);
      t.true(isSound(reading), JSON.stringify(reading));
      t.true(ms < soonMs, `${ms} ms`);
    }),
    { numRuns: runs },
  );
});

test.serial('no bounce and no complaint is ever credited to another delivery', async (t) => {
  t.timeout(300_000);
  const credited: IncomingBounce[] = [];
  const known = new Set([goldenDelivery, ...others]);
  const readReturnPath = createReturnPathReader(fixedSecrets(goldenSecret));
  const handler = new BounceHandler({
    readAddress: createServiceAddressReader(
      {
        returnPathDomain: goldenDomain,
        hostname: 'mail.postern.example',
        isReturnPath: async () => false,
        isReceiving: async () => false,
      },
      readReturnPath,
    ),
    findDelivery: async (id) => (known.has(id) ? ({} as never) : null),
    unsubscribe: () => Promise.reject(new Error('nobody asked')),
    read: (bytes, role, { fromNullSender }) => readMail(bytes, role, fromNullSender),
    deliveryOf: createDeliveryOf({
      returnPath: readReturnPath,
      messageId: createMessageIdReader(fixedSecrets(goldenSecret)),
      link: () => null,
      deliveriesOf: async () => others,
    }),
    record: async (returned) => {
      credited.push(returned);
      return 'gone' as BounceResult;
    },
    keepMail: async () => {},
    keepReport: async () => {},
    report: () => {},
    clock: manualClock(),
  });
  const client = { address: '192.0.2.1', helo: 'x', tls: null };
  const ending = new AbortController().signal;
  const session = { id: 'x', user: null, client, ending, transaction: { size: null } };
  const to = { 'return-path': returnPathOf(goldenDelivery), letters: 'abuse', complaints: 'complaints' };
  await fc.assert(
    fc.asyncProperty(mutated, async ({ raw, role }) => {
      const name = to[role as keyof typeof to] ?? 'dmarc';
      const address = name.includes('@') ? name : `${name}@${goldenDomain}`;
      const envelope = { from: '', isUtf8: false, to: [address], requireTls: false };
      await handler.onMessage(raw, envelope, session);
    }),
    { numRuns: runs },
  );
  t.true(credited.length > runs / 10, `${credited.length} credited`);
  t.deepEqual([...new Set(credited.map(({ deliveryId }) => deliveryId))], [goldenDelivery]);
});

/** Of each pattern that a stranger's text meets, pieces that almost match, repeated to the largest size. */
test.serial('prose made of the words that the formats look for is read in no time', async (t) => {
  t.timeout(300_000);
  const names = new Set(textBounceRules.map(({ name }) => name));
  const prose = golden.filter(({ reading }) => 'format' in reading && names.has(reading.format));
  const bodies = prose.map(({ raw }) => raw.toString('latin1').split('\r\n\r\n').slice(1).join('\r\n'));
  const lines = new Set(bodies.flatMap((body) => body.split('\r\n').slice(0, 8)));
  const odd = column('bounces/odd-pieces');
  for (const line of [...lines, ...odd]) {
    const text = `${line}\r\n`.repeat(Math.ceil(20_000 / (line.length + 2)));
    const flat = line.repeat(Math.ceil(20_000 / Math.max(line.length, 1)));
    for (const body of [text, flat]) {
      const started = process.threadCpuUsage();
      await readMail(Buffer.from(`From: mailer-daemon@x\r\n\r\n${body}`, 'latin1'), 'return-path');
      const ms = cpuMsSince(started);
      t.true(ms < soonMs, `${Math.round(ms)} ms: ${line}`);
    }
  }
});

test.serial('of a very long mail the beginning is read, whatever its lines are', async (t) => {
  const size = 20 * 2 ** 20;
  for (const line of ['\r\n', 'a\r\n', 'x', '--a\r\n', 'A: b\r\n']) {
    const raw = Buffer.alloc(size, line);
    for (const head of ['A: b\r\n\r\n', 'Content-Type: multipart/mixed; boundary=a\r\n\r\n', '']) {
      const started = process.threadCpuUsage();
      await readMail(Buffer.concat([Buffer.from(head), raw]), 'letters');
      const ms = cpuMsSince(started);
      t.true(ms < 3 * soonMs, `${Math.round(ms)} ms: ${JSON.stringify(head + line)}`);
    }
  }
});
