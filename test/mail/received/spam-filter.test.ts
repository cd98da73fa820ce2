/** Rspamd and spamd are asked in their protocols; a filter that is away, late or strange costs a verdict and no mail. */
import { once } from 'node:events';
import { createServer as createHttp } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { manualClock } from '#lab/clock.ts';
import { startReceiving } from '#lab/scenes/receiving.ts';
import { createSpamFilter } from '#mail/received/spam-filter.ts';
import { readOrganizationNeeds } from '#operate/status/organization-needs.ts';

const mail = {
  raw: Buffer.from('Subject: x\r\n\r\nbuy\r\n'),
  sender: 'änn@there.invalid',
  recipients: ['a@x.invalid', 'b@x.invalid'],
  peer: '192.0.2.1',
  helo: 'there.invalid',
};

async function listening(t: ExecutionContext, server: Server, address = '127.0.0.1'): Promise<number> {
  server.listen(0, address);
  await once(server, 'listening');
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

function filterAt(url: string | null, timeoutMs = 20_000) {
  const errors: string[] = [];
  const clock = manualClock();
  const onError = (what: string) => void errors.push(what);
  return { errors, clock, ask: createSpamFilter({ url, clock, onError, timeoutMs }) };
}

test('Rspamd: the envelope in fields, the mail as the body', async (t) => {
  const asked: unknown[] = [];
  const server = createHttp(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString();
    const { ip, from, rcpt } = request.headers;
    asked.push([request.method, request.url, ip, from, rcpt, body]);
    response.end('{"action":"add header","score":7.5,"required_score":15,"symbols":{"BUY":{"score":7.5}}}');
  });
  const { ask } = filterAt(`http://127.0.0.1:${await listening(t, server)}`);
  t.deepEqual(await ask(mail), { isSpam: true, score: 7.5, threshold: 15, rules: ['BUY'] });
  t.deepEqual(asked, [
    ['POST', '/checkv2', '192.0.2.1', '?nn@there.invalid', 'a@x.invalid, b@x.invalid', mail.raw.toString()],
  ]);
});

test('spamd: SYMBOLS of the protocol', async (t) => {
  const server = createServer({ allowHalfOpen: true }, async (socket) => {
    let given = '';
    socket.on('data', (chunk) => {
      given += chunk.toString();
    });
    await once(socket, 'end');
    t.is(given, `SYMBOLS SPAMC/1.5\r\nContent-length: ${mail.raw.length}\r\n\r\n${mail.raw}`);
    socket.end('SPAMD/1.1 0 EX_OK\r\nContent-length: 8\r\nSpam: False ; -1.2 / 5.0\r\n\r\nALL,NONE');
  });
  const { ask } = filterAt(`spamd://[::1]:${await listening(t, server, '::1')}`);
  t.deepEqual(await ask(mail), { isSpam: false, score: -1.2, threshold: 5, rules: ['ALL', 'NONE'] });
});

test('a filter that does not answer is left alone for 30 s', async (t) => {
  for (const scheme of ['http', 'spamd']) {
    let calls = 0;
    const silent = createServer(() => {
      calls += 1;
    });
    const { ask, errors, clock } = filterAt(`${scheme}://127.0.0.1:${await listening(t, silent)}`, 500);
    t.is(await ask(mail), null);
    t.is(await ask(mail), null);
    t.is(errors.length, 1, scheme);
    const before = calls;
    await clock.advance('31s');
    t.is(await ask(mail), null);
    t.true(calls > before, 'it is asked again');
    const again = calls;
    clock.setBack('1d');
    t.is(await ask(mail), null);
    t.true(calls > again, 'also after the clock was set back');
  }
  t.is(await filterAt(null).ask(mail), null);
});

test('without its filter mail comes in all the same, and status says when a store is full', async (t) => {
  const world = await startReceiving(t, {
    settings: { POSTERN_SPAM_FILTER: 'http://127.0.0.1:9', POSTERN_RECEIVED_STORE: '2K' },
  });
  await world.route();
  t.regex(await world.receives(`Subject: x\r\n\r\n${'x'.repeat(900)}\r\n`), /^250/);
  t.like(await world.kept(), [{ summary: { spam: null } }]);
  await world.db('received_stores').update({ bytes: 2000 });
  t.like(await readOrganizationNeeds(world.db, world.clock.now(), 2048), [
    { cause: 'store_full', subject: 'Tenant', figure: 'received mail takes 98% of POSTERN_RECEIVED_STORE' },
  ]);
});
