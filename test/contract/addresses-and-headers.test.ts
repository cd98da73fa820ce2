/** docs/design.md, section 2, the rows about fields: sizes, contents, attachments, addresses, types, headers, tags. */
import { once } from 'node:events';
import { connect } from 'node:net';
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import type { Answer } from '#lab/scenes/world.ts';
import { table } from '#lab/table.ts';
import { until } from '#lab/until.ts';
import { isError, isReplay, isSent, mailTo } from './answer.ts';
import { openTenant, sendPath, sharedWorld, someone, type Tenant } from './client.ts';

let tenant: Tenant;
const world = sharedWorld(async (made) => {
  tenant = await openTenant(made);
});

const limit = 20 * 2 ** 20;
const padded = (size: number) => {
  const body = Buffer.alloc(size, ' ');
  const fields = { from: 'app@sender.invalid', to: someone('nowhere.invalid'), subject: 'Hello', text: 'Hi' };
  body.write(JSON.stringify(fields));
  return body;
};

test.serial('characters, sizes: the request body 20 MiB, past it 400 BAD_REQUEST', async (t) => {
  isSent(t, await tenant.call('POST', sendPath, { body: padded(limit) }));
  isError(t, await tenant.call('POST', sendPath, { body: padded(limit + 1) }), '400 BAD_REQUEST');
});

test('characters, sizes: past it without reading on', async (t) => {
  const headers = { 'content-length': String(limit + 1) };
  isError(t, await tenant.send({}, { headers }), '400 BAD_REQUEST', 'all but the first bytes never come');
});

test.serial(
  'characters, sizes: a body that says no length is refused at the limit and not read further',
  async (t) => {
    const { hostname, port } = new URL(world().url());
    const socket = connect(Number(port), hostname);
    let answer = '';
    socket.on('error', () => {});
    socket.on('data', (data) => {
      answer += data;
      socket.end();
    });
    const closed = new Promise((resolve) => socket.on('close', resolve));
    const head = [`POST ${sendPath} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${tenant.key}`];
    const type = ['Content-Type: application/json', 'Transfer-Encoding: chunked'];
    socket.write(`${[...head, ...type].join('\r\n')}\r\n\r\n`);
    const mebibyte = Buffer.alloc(2 ** 20, ' ');
    for (let sent = 0; sent < 200 && answer === ''; sent++) {
      const chunk = Buffer.concat([Buffer.from('100000\r\n'), mebibyte, Buffer.from('\r\n')]);
      if (!socket.write(chunk)) await Promise.race([once(socket, 'drain').catch(() => {}), closed]);
    }
    await closed;
    t.regex(answer, /^HTTP\/1\.1 400 .*\r\nConnection: close\r\n.*"error":"BAD_REQUEST"/is);
    t.true(socket.bytesWritten < 60 * 2 ** 20, `${socket.bytesWritten} bytes went into the connection`);
  },
);

const types: [type: string | null, good: boolean][] = table('contract/content-types');

for (const [type, good] of types) {
  test(`Content-Type: ${type ?? 'none'} is ${good ? 'taken' : '400 BAD_REQUEST'}`, async (t) => {
    const answer = await tenant.send({}, { headers: { 'content-type': type } });
    if (good) isSent(t, answer);
    else isError(t, answer, '400 BAD_REQUEST');
  });
}

test('issues[]: every violation at once; path elements are strings, array indexes too', async (t) => {
  const wrong = {
    to: ['a@b.invalid', 'x', 5],
    subject: '',
    text: '',
    replyTo: 'x',
    attachments: [{ filename: 'a.exe', content: '!' }, 5],
    headers: { From: 'x', 'X-A': 5 },
    tags: { '': 'v', 'a.b': 5 },
    tracking: { openTracking: 'x' },
  };
  const answer = await tenant.send(wrong);
  isError(t, answer, '400 VALIDATION_ERROR');
  t.deepEqual(
    answer.body.issues.map(({ path }: { path: string[] }) => path),
    [
      ['to', '1'],
      ['to', '2'],
      ['subject'],
      ['replyTo'],
      ['attachments', '0', 'filename'],
      ['attachments', '0', 'content'],
      ['attachments', '1'],
      ['headers', 'From'],
      ['headers', 'X-A'],
      ['tags', ''],
      ['tags', 'a.b'],
      ['tracking', 'openTracking'],
      ['html'],
    ],
  );
});

// Addresses.

test('to: the same address twice counts, costs and is delivered once', async (t) => {
  const own = await openTenant(world(), { quota: 5, limits: { emailsPerDay: 2 } });
  const [ann, bob] = [someone(), someone()];
  isSent(t, await own.send({ to: [ann, bob, ann.toUpperCase(), ann] }), [ann, bob]);
  t.deepEqual(await own.books(), { emails: 1, quota: 3, wallet: 0, ledger: 3 });
  await mailTo(world(), bob);
  await mailTo(world(), ann);
  const arrived = world().mx[0]!.messages.flatMap(({ to }) => to.map((address) => address.toLowerCase()));
  t.is(arrived.filter((address) => address === ann).length, 1);
});

test('addresses compared: domain by its A-label without letter case, local part without letter case; shown as first given', async (t) => {
  const own = await openTenant(world());
  const to = ['Ann@Bücher.invalid', 'ANN@xn--bcher-kva.invalid', 'ann@BÜCHER.invalid', 'bob@bücher.invalid'];
  const first = await own.send({ to });
  isSent(t, first, ['Ann@Bücher.invalid', 'bob@bücher.invalid']);
  isReplay(t, await own.send({ to: ['BOB@XN--BCHER-KVA.invalid', 'ann@bücher.invalid'] }), first);
  t.deepEqual((await own.get(first.body.emailId)).body.to, ['Ann@Bücher.invalid', 'bob@bücher.invalid']);
  await own.suppress('ann@bücher.invalid');
  const partial = await own.send({ to: ['ANN@XN--bcher-kva.invalid', someone()] });
  t.deepEqual(partial.body.suppressed, ['ANN@XN--bcher-kva.invalid']);
});

test('addresses compared: the sender’s domain too', async (t) => {
  const own = await openTenant(world());
  await own.addDomain('xn--strae-oqa.invalid');
  const key = await own.addKey('email:send', 'domain_scope:xn--strae-oqa.invalid');
  for (const from of [
    'App <app@straße.invalid>',
    'app@STRASSE.invalid'.replace('SS', 'ß'),
    'a@XN--STRAE-OQA.invalid',
  ])
    isSent(t, await key.send({ from }), undefined, from);
});

test('addresses compared: suppressed in any letter case, normal form or quotes, each mailbox once', async (t) => {
  const own = await openTenant(world(), { quota: 3 });
  await own.suppress('Gone@There.invalid', 'left@bücher.invalid', 'jo\u0308rg@there.invalid');
  const ann = someone();
  const others = ['LEFT@xn--bcher-kva.invalid', 'JÖRG@there.invalid', '"gone"@there.invalid'];
  const to = ['gone@THERE.invalid', ann, ...others];
  const { body } = await own.send({ to });
  t.deepEqual([body.accepted, body.suppressed], [[ann], [to[0], to[2], to[3]]]);
  t.deepEqual(await own.books(), { emails: 1, quota: 2, wallet: 0, ledger: 2 });
  isSent(t, await (await openTenant(world())).send({ to: 'gone@there.invalid' }), ['gone@there.invalid']);
});

// Headers and tags at the other end.

test('custom headers arrive: Date, Message-ID, Reply-To and Sender replace ours, never a second field; id follows Message-ID', async (t) => {
  const to = someone();
  const headers = {
    Date: 'Fri, 02 Jan 2026 03:04:05 +0000',
    'message-id': '<order.4711@sender.invalid>',
    'Reply-To': 'Help <help@there.invalid>',
    Sender: 'robot@sender.invalid',
    'X-Order': '4711',
    'List-Unsubscribe': '<mailto:a@b.invalid>',
  };
  const answer = await tenant.send({ to, headers, replyTo: 'other@there.invalid' });
  isSent(t, answer, [to]);
  t.is(answer.body.id, 'order.4711@sender.invalid');
  const mail = await mailTo(world(), to);
  for (const [name, value] of Object.entries(headers)) t.deepEqual(mail.header(name), [value], name);
  for (const name of ['From', 'To', 'Subject', 'MIME-Version', 'Content-Type'])
    t.is(mail.header(name).length, 1, name);
  t.is((await tenant.get(answer.body.emailId)).body.id, 'order.4711@sender.invalid');
});

const tags = { kind: 'welcome', note: '' };

async function delivered(): Promise<Answer['body']> {
  const { body } = await tenant.send({ tags });
  return until(async () => {
    const answer = await tenant.get(body.emailId);
    return answer.body.status === 'delivered' && answer.body;
  });
}

test('tags: shown in GET and the mail log’s lines', async (t) => {
  const email = await delivered();
  t.deepEqual(email.tags, tags);
  const { json } = cliOf(t, world());
  const lines = await until(
    async () => {
      const found = await json('logs --email', email.emailId);
      return found.length > 0 && found;
    },
    { what: 'the mail log' },
  );
  for (const line of lines) t.deepEqual(line.tags, tags, line.msg);
});

test('tags: shown in events', async (t) => {
  for (const { data } of (await delivered()).events) t.deepEqual(data.tags, tags);
});
