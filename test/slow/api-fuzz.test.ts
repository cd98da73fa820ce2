/**
 * Every request gets a documented response, nothing is half done, and the ledger balances. Thousands of requests
 * in every slow run; `FUZZ_RUNS=50000 npm test -- test/slow/api-fuzz.test.ts` for more.
 */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import fc from 'fast-check';
import { checkBroken, nasty } from '#lab/broken-requests.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { composeMime, toBytes } from '#mail/compose/mime.ts';
import { compareKey, domainOf, envelopeAddress, parseMailbox } from '#platform/values/address.ts';

const runs = Number(process.env.FUZZ_RUNS ?? 1000);

/** Bytes of the heap in use after garbage collection. */
function heapInUse(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}

test('no request is answered outside the contract, and the ledger balances', async (t) => {
  const world = await startWorld(t, { tenant: { quota: 1_000_000 } });
  const before = heapInUse();
  const mail = {
    from: 'App <app@sender.invalid>',
    to: ['ann@there.invalid'],
    subject: 'Hello',
    html: '<p>Hello</p>',
    text: 'Hello',
    replyTo: 'help@there.invalid',
    headers: { 'X-A': 'b' },
    tags: { a: 'b' },
    tracking: { openTracking: true, clickTracking: false },
    attachments: [{ filename: 'a.txt', content: 'aGk=', contentType: 'text/plain' }],
  };
  await checkBroken(t, world, {
    base: `${world.url()}/api/public`,
    headers: { authorization: `Bearer ${world.key}` },
    good: [
      { route: 'POST /email/send', json: mail },
      { route: 'POST /email/send', json: { ...mail, idempotencyKey: 'k' } },
      { route: 'POST /email/batch', json: [mail] },
    ],
    isError: ({ json }) =>
      /^[A-Z_]+$/.test(json.error) &&
      typeof json.message === 'string' &&
      Array.isArray(json.issues) &&
      json.issues.length > 0 === (json.error === 'VALIDATION_ERROR'),
    isRefusedIn2xx: ({ json }) => json.results?.every(({ status }: { status: number }) => status >= 400),
  });
  await t.notThrowsAsync(balanced(world));
  t.log(`memory grew by ${Math.round((heapInUse() - before) / 2 ** 20)} MiB`);
});

async function balanced(world: World): Promise<void> {
  const [org] = await world.db('organizations').select('quota_limit', 'quota_used', 'ledger_total');
  const changes: number[] = await world.db('credit_entries').pluck('change');
  const sum = changes.reduce((total, change) => total + change, 0);
  const spent = await world.db('deliveries').whereNot({ status: 'suppressed' }).pluck('id');
  if (
    sum !== org.ledger_total ||
    sum !== org.quota_limit - org.quota_used ||
    org.quota_used !== spent.length
  ) {
    throw new Error(`the books do not balance: ${JSON.stringify({ ...org, sum, spent: spent.length })}`);
  }
}

test('bytes that are not valid HTTP get a response or a closed connection, and the server keeps working', async (t) => {
  const world = await startWorld(t);
  const { hostname, port } = new URL(world.url());
  const line = fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
    nasty.map((path) => Buffer.from(`GET /api/public/email/${path} HTTP/1.1\r\nHost: x\r\n\r\n`)),
    nasty.map((value) => Buffer.from(`GET / HTTP/1.1\r\nHost: x\r\nAuthorization: ${value}\r\n\r\n`)),
    fc.constant(Buffer.from('POST /api/public/email/send HTTP/1.1\r\nContent-Length: x\r\n\r\n')),
    fc.constant(Buffer.from(`GET / HTTP/1.1\r\nX: ${'y'.repeat(100_000)}\r\n\r\n`)),
  );
  await fc.assert(
    fc.asyncProperty(line, async (bytes) => {
      const socket = connect(Number(port), hostname);
      socket.on('error', () => {});
      socket.end(bytes);
      const answer = await text(socket).catch(() => '');
      t.regex(answer, /^(HTTP\/1\.1 ([34]\d\d|200) |$)/);
    }),
    { numRuns: Math.ceil(runs / 5) },
  );
  t.is((await world.send({ to: 'ann@there.invalid' })).status, 200);
});

test('an accepted address is safe in an SMTP command, and equal to its other spellings', (t) => {
  fc.assert(
    fc.property(
      fc.oneof(
        nasty,
        fc.tuple(nasty, nasty).map(([a, b]) => `${a}@${b}.invalid`),
        fc.emailAddress(),
      ),
      (text) => {
        if (domainOf(text) === null) return;
        t.notRegex(envelopeAddress(text), /[\r\n\0<>]/);
        t.is(compareKey(text), compareKey(compareKey(text)));
        t.is(parseMailbox(text)?.address, text);
      },
    ),
    { numRuns: runs },
  );
});

test('no text adds a bare CR or LF, or a header, to the message', async (t) => {
  const texts = fc.oneof(
    nasty,
    fc.string({ unit: fc.constantFrom('a', '\r', '\n', '.', ' ', 'é', '\t'), maxLength: 60 }),
  );
  fc.assert(
    fc.property(texts, texts, texts, (subject, html, plain) => {
      const { message: composed } = composeMime({
        from: {
          name: subject.replace(/[\r\n\0]/g, ''),
          address: 'app@sender.invalid',
          domain: 'sender.invalid',
        },
        to: [{ name: '', address: 'ann@there.invalid' }],
        subject,
        html: html || 'x',
        text: plain || 'x',
        attachments: [{ filename: 'a.txt', content: Buffer.from(plain) }],
        headers: {},
        messageId: '1@postern.invalid',
        date: 0,
      });
      const message = toBytes(composed).toString('latin1');
      t.notRegex(message, /\r(?!\n)|(?<!\r)\n/);
      const names = message
        .split('\r\n\r\n', 1)[0]!
        .split(/\r\n(?![ \t])/)
        .map((field) => field.split(':', 1)[0]);
      t.deepEqual(
        names.sort(),
        ['Content-Type', 'Date', 'From', 'MIME-Version', 'Message-ID', 'Subject', 'To'].filter((name) =>
          names.includes(name),
        ),
      );
    }),
    { numRuns: Math.ceil(runs / 4) },
  );
});
