/** Reading returned mail: the golden folder, addresses, what a reading makes of its delivery, the thread that reads. */
import { once } from 'node:events';
import { MessageChannel, Worker } from 'node:worker_threads';
import test from 'ava';
import {
  goldenDelivery,
  goldenDomain,
  goldenMails,
  goldenReturnPath,
  goldenSecret,
  reportOf,
} from '#lab/golden.ts';
import { runs } from '#lab/runs.ts';
import { table } from '#lab/table.ts';
import { transitionOnBounce } from '#mail/returned/bounce-transition.ts';
import { createIsolatedParser, serveParsing } from '#mail/returned/isolated-parser.ts';
import { automaticRules } from '#mail/returned/parse/auto-reply.ts';
import { complaintVariants } from '#mail/returned/parse/complaint.ts';
import { readMail } from '#mail/returned/parse/parse-bounce.ts';
import { textBounceRules } from '#mail/returned/parse/text-bounce.ts';
import type { Complaint, ReportedFailure } from '#mail/returned/parse-result.ts';
import { createReturnPath, createReturnPathReader } from '#mail/returned/return-path.ts';
import { createServiceAddressReader, type ServiceAddress } from '#mail/returned/service-addresses.ts';
import { fixedSecrets } from '#platform/base/secrets.ts';
import type { DeliveryStatus } from '#platform/values/glossary.ts';

const golden = goldenMails();

for (const { name, raw, role, fromNullSender, reading } of golden) {
  test(`golden: ${name}`, async (t) => {
    t.deepEqual(await readMail(raw, role, fromNullSender), reading);
  });
}

test('the golden folder has at least 60 bounces, complaints and automatic answers, and every kind of reading', (t) => {
  const kinds = golden.map(({ reading }) => reading.kind);
  const count = (kind: string) => kinds.filter((one) => one === kind).length;
  t.true(count('failed') + count('complaint') + count('automatic') >= 60);
  for (const kind of ['failed', 'delayed', 'arrived', 'automatic', 'complaint', 'report', 'letter']) {
    t.true(count(kind) > 0, kind);
  }
});

test('every format and every rule has a golden mail, but for those of headers that differ by their name alone', (t) => {
  const read = new Set(golden.map(({ reading }) => ('format' in reading ? reading.format : reading.kind)));
  const names = [...textBounceRules, ...automaticRules, ...complaintVariants].map(({ name }) => name);
  t.deepEqual([...new Set(names)].filter((name) => !read.has(name)).sort(), unseen);
});

/** Known by the collections of others alone; their mails are not ours to keep. */
const unseen = [
  ...['aol', 'courier', 'exchange-delayed', 'gmail-html', 'interscan', 'james', 'kddi', 'list', 'm-filter'],
  ...['mailfoundry', 'verizon-mms', 'vtext'],
];

test('the complaints that carry our key name the delivery, and the forged one nobody', (t) => {
  const readReturnPath = createReturnPathReader(fixedSecrets(goldenSecret));
  for (const { name, reading } of golden) {
    if (reading.kind !== 'complaint') continue;
    const ids = reading.tokens.map(({ text }) => readReturnPath(text)).filter((id) => id !== null);
    t.deepEqual(ids, /anonymous|forged/.test(name) ? [] : [goldenDelivery], name);
  }
});

test('a return path is read as it was made, in any letter case; nothing else is read', (t) => {
  const address = createReturnPath(fixedSecrets(goldenSecret), goldenDomain)(goldenDelivery);
  const read = createReturnPathReader(fixedSecrets(goldenSecret));
  const local = address.split('@')[0]!;
  t.true(local.length <= 40);
  t.is(read(local), goldenDelivery);
  t.is(read(goldenReturnPath.split('@')[0]!), goldenDelivery, 'the older form');
  t.is(read(local.toUpperCase()), goldenDelivery);
  t.is(createReturnPathReader(fixedSecrets('another'))(local), null);
  const last = local.at(-1) === '0' ? '1' : '0';
  const zero = '0'.repeat(32);
  const forged = [
    `${local.slice(0, -1)}${last}`,
    local.slice(0, -1),
    `${local}0`,
    `x${local}`,
    `${local.slice(0, 2)}v${local.slice(3)}`,
    `b-${zero}-${'0'.repeat(16)}`,
    `b-${zero}00000`,
    ` ${local}`,
    '',
  ];
  for (const one of forged) t.is(read(one), null, one);
});

const tlsHead =
  '{"organization-name":"x","report-id":"1","date-range":{},' +
  '"policies":[{"policy":{"policy-type":"sts","policy-domain":"shop.example"},"failure-details":[';
const dmarcHead =
  '<feedback><report_metadata><org_name>x</org_name></report_metadata>' +
  '<policy_published><domain>shop.example</domain></policy_published>';
const mebi = 1024 * 1024;

/** Some KB of gzip each, which would be very many objects. */
const bombs = {
  'objects in JSON': `${tlsHead}${'{},'.repeat(mebi / 3)}{}]}]}`,
  'numbers in JSON': `${tlsHead}${'1,'.repeat(mebi / 2)}1]}]}`,
  'nested arrays in JSON': `${tlsHead}${'['.repeat(mebi / 2)}${']'.repeat(mebi / 2)}]}]}`,
  'records in XML': `${dmarcHead}${'<record/>'.repeat((4 * mebi) / 9)}</feedback>`,
  'instructions in XML': `${dmarcHead}${'<?a?>'.repeat((4 * mebi) / 5)}</feedback>`,
};

for (const [what, text] of Object.entries(bombs)) {
  test(`a report of very many ${what} is not read`, async (t) => {
    t.like(await readMail(reportOf(text), 'reports'), { kind: 'letter' });
  });
}

test('a report of many records is read', async (t) => {
  const count = runs(10_000);
  const record =
    '<record><row><source_ip>192.0.2.1</source_ip><count>1</count><policy_evaluated><disposition>none</disposition>' +
    '<dkim>pass</dkim><spf>pass</spf></policy_evaluated></row><identifiers><header_from>shop.example</header_from>' +
    '</identifiers><auth_results><dkim><domain>shop.example</domain><selector>s</selector><result>pass</result></dkim>' +
    '<spf><domain>shop.example</domain><result>pass</result></spf></auth_results></record>';
  const reading = await readMail(reportOf(`${dmarcHead}${record.repeat(count)}</feedback>`), 'reports');
  t.like(reading, { kind: 'report', report: { domain: 'shop.example', totals: { messages: count } } });
});

const ownReturnPath = createReturnPath(fixedSecrets(goldenSecret), goldenDomain)(goldenDelivery);
const placeOf = createServiceAddressReader(
  {
    returnPathDomain: goldenDomain,
    hostname: 'mail.postern.example',
    isReturnPath: async (name) => name === 'bounces.shop.example',
    isReceiving: async (name) => name === 'shop.example',
  },
  createReturnPathReader(fixedSecrets(goldenSecret)),
);

const places: [address: string, place: ServiceAddress['role']][] = [
  [ownReturnPath, 'return-path'],
  [ownReturnPath.toUpperCase(), 'return-path'],
  [`postmaster@${goldenDomain}`, 'letters'],
  ['Postmaster@MAIL.postern.example', 'letters'],
  ['postmaster', 'letters'],
  [`abuse@${goldenDomain}`, 'letters'],
  [`complaints@${goldenDomain}`, 'complaints'],
  [`dmarc@${goldenDomain}`, 'reports'],
  [`tls-reports@${goldenDomain}.`, 'reports'],
  [`b-${'0'.repeat(32)}-${'0'.repeat(16)}@${goldenDomain}`, 'unknown'],
  [`ann@${goldenDomain}`, 'unknown'],
  [`constructor@${goldenDomain}`, 'unknown'],
  [`__proto__@${goldenDomain}`, 'unknown'],
  [ownReturnPath.replace(goldenDomain, 'Bounces.shop.example.'), 'return-path'],
  ['postmaster@bounces.shop.example', 'letters'],
  ['ann@bounces.shop.example', 'unknown'],
  ['PostMaster@shop.example.', 'letters'],
  ['abuse@shop.example', 'other-domain'],
  [ownReturnPath.replace(goldenDomain, 'bounces.other.example'), 'other-domain'],
  [ownReturnPath.replace(goldenDomain, 'shop.example'), 'other-domain'],
  // A return path is at its domain alone.
  [ownReturnPath.replace(goldenDomain, 'mail.postern.example'), 'unknown'],
  ['ann@example.org', 'other-domain'],
  ['ann', 'other-domain'],
  ['', 'other-domain'],
  ['@', 'other-domain'],
  [`postmaster@sub.${goldenDomain}`, 'other-domain'],
  [`ann%example.org@${goldenDomain}`, 'other-domain'],
  [`example.org!ann@${goldenDomain}`, 'other-domain'],
  [`"ann@example.org"@${goldenDomain}`, 'other-domain'],
  [`@example.org:ann@${goldenDomain}`, 'other-domain'],
  ['postmaster@[127.0.0.1]', 'other-domain'],
  [`postmaster@${goldenDomain}@example.org`, 'other-domain'],
];

for (const [address, role] of places) {
  test(`the address ${JSON.stringify(address)} is ${role}`, async (t) => {
    t.is((await placeOf(address)).role, role);
  });
}

const failure: ReportedFailure = {
  kind: 'failed',
  format: 'qmail',
  recipient: null,
  reportedBy: null,
  bounce: { type: 'hard', category: 'unknown_user', fault: 'recipient', diagnostic: '550 no' },
  rule: 'unknown-user',
};
const complaint: Complaint = {
  kind: 'complaint',
  format: 'arf',
  feedbackType: 'abuse',
  reportedBy: null,
  tokens: [],
};

/** State, whether an attempt may have arrived, then what a bounce and what a complaint makes of it. */
const moves: [DeliveryStatus, boolean, string | null, string | null][] = table('bounces/states');

for (const [status, mayHaveArrived, bounced, complained] of moves) {
  test(`${status}${mayHaveArrived ? ', which may have arrived' : ''}: a bounce makes it ${bounced}, a complaint ${complained}`, (t) => {
    const standing = { status, recipient: 'ann@example.org', attempts: 1, mayHaveArrived };
    const made = (reading: ReportedFailure | Complaint) => {
      const move = transitionOnBounce(standing, reading);
      return move === 'wait' || move === null ? move : move.status;
    };
    t.is(made(failure), bounced as never);
    t.is(made(complaint), complained as never);
  });
}

const thread = new URL('../../../src/mail/returned/parser-thread.ts', import.meta.url);
const sample = golden.find(({ name }) => name === 'postfix-unknown-user')!;

test('the thread reads many mails at once, each as the function does', async (t) => {
  const errors: unknown[] = [];
  const reader = createIsolatedParser({
    spawn: () => new Worker(thread),
    onError: (_, error) => errors.push(error),
    timeoutMs: 60_000,
  });
  t.teardown(reader.close);
  const some = golden.slice(0, 20);
  const readings = await Promise.all(some.map(({ raw, role }) => reader.read(raw, role)));
  t.deepEqual(
    readings,
    some.map(({ reading }) => reading),
  );
  t.deepEqual(errors, []);
});

/** Reads as the real one does, but for mails of these words. */
const trap = `
  const { parentPort, workerData } = require('node:worker_threads');
  parentPort.on('message', ({ bytes }) => {
    const text = Buffer.from(bytes).toString();
    parentPort.postMessage('begun');
    if (text === 'hang') for (;;);
    if (text === 'die') process.exit(1);
    if (text === 'throw') throw new Error('thrown');
    if (text === 'eat') { const all = []; for (;;) all.push(new Array(1e6).fill({})); }
    parentPort.postMessage({ kind: 'arrived', format: text });
    if (workerData) Atomics.store(workerData, 0, 1), Atomics.notify(workerData, 0);
  });`;

test('a mail that hangs, kills or feeds on its thread ends with it, and alone', async (t) => {
  const troubles: unknown[] = [];
  const reader = createIsolatedParser({
    spawn: () => new Worker(trap, { eval: true, resourceLimits: { maxOldGenerationSizeMb: 32 } }),
    onError: (_, error) => troubles.push(error),
    timeoutMs: 1000,
  });
  t.teardown(reader.close);
  const mails = ['a', 'hang', 'b', 'die', 'throw', 'eat', 'c'];
  const readings = await Promise.all(mails.map((text) => reader.read(Buffer.from(text), 'letters')));
  t.deepEqual(
    readings.map((reading) => ('format' in reading ? reading.format : reading.kind)),
    ['a', 'letter', 'b', 'letter', 'letter', 'letter', 'c'],
  );
  t.is(troubles.length, 4);
});

test('mails of one network are not all read before that of another', async (t) => {
  const reader = createIsolatedParser({ spawn: () => new Worker(trap, { eval: true }), onError: () => {} });
  t.teardown(reader.close);
  const order: string[] = [];
  const read = async (text: string, network: string) => {
    await reader.read(Buffer.from(text), 'return-path', { network });
    order.push(text);
  };
  await Promise.all([read('a1', 'a'), read('a2', 'a'), read('a3', 'a'), read('b', 'b')]);
  t.deepEqual(order, ['a1', 'a2', 'b', 'a3']);
});

test('a reading that was done in time counts, however late the main thread looks at it', async (t) => {
  const errors: unknown[] = [];
  const timeoutMs = 50;
  const answered = new Int32Array(new SharedArrayBuffer(4));
  const reader = createIsolatedParser({
    spawn() {
      const worker = new Worker(trap, { eval: true, workerData: answered });
      worker.on('message', (message) => message === 'begun' && setImmediate(blockUntilAnswered));
      return worker;
    },
    onError: (_, error) => errors.push(error),
    timeoutMs,
  });
  t.teardown(reader.close);
  t.like(await reader.read(Buffer.from('signal'), 'letters'), { format: 'signal' });
  t.deepEqual(errors, []);

  function blockUntilAnswered() {
    Atomics.wait(answered, 0, 0);
    // And the time is over.
    Atomics.wait(answered, 0, 1, 2 * timeoutMs);
  }
});

test('a thread that does not start refuses the mail, which may come again', async (t) => {
  const reader = createIsolatedParser({
    spawn: () => new Worker('throw new Error("no disk")', { eval: true }),
    onError: () => {},
  });
  await t.throwsAsync(reader.read(sample.raw, sample.role), { message: /does not start/ });
  await reader.close();
  await t.throwsAsync(reader.read(sample.raw, sample.role), { message: /closed/ });
});

test('a mail that is being read when the reader closes is refused', async (t) => {
  const reader = createIsolatedParser({ spawn: () => new Worker(trap, { eval: true }), onError: () => {} });
  const refused = [reader.read(Buffer.from('hang'), 'letters'), reader.read(Buffer.from('a'), 'letters')];
  const thrown = Promise.all(refused.map((one) => t.throwsAsync(one, { message: /closed/ })));
  await reader.close();
  await thrown;
});

test('the time for a mail runs from when its thread begins to read it', async (t) => {
  const { port1, port2 } = new MessageChannel();
  t.teardown(() => port1.close());
  serveParsing(port2, async () => ({ kind: 'letter' }));
  port1.postMessage({ bytes: sample.raw, role: sample.role });
  t.deepEqual(await once(port1, 'message'), ['begun']);
  t.deepEqual(await once(port1, 'message'), [{ kind: 'letter' }]);
});
