/** `domain receive`, `route …` and `received …`: from switching a domain on to why mail for an address does not arrive. */
import test from 'ava';
import { createCli } from '#lab/cli.ts';
import { freePort } from '#lab/load/ports.ts';
import { emptySummary, receivedMail } from '#lab/received.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { readMail } from '#mail/received/read-mail.ts';
import { insertReceived } from '#mail/received/rows/received-mails.ts';

async function start(t: Parameters<typeof startWorld>[0]) {
  const port = String(await freePort('127.0.0.1'));
  const world = await startWorld(t, { database: 'sqlite', settings: { POSTERN_INBOUND_PORT: port } });
  const { dataDir, dnsServers, hostname } = world.config;
  const cli = createCli(t, {
    POSTERN_DATA_DIR: dataDir,
    POSTERN_DNS_SERVERS: dnsServers.join(' '),
    POSTERN_HOSTNAME: hostname,
    POSTERN_INBOUND_PORT: port,
  });
  return { world, ...cli };
}

test('a domain is switched on, a route added, listed, checked and removed', async (t) => {
  const { world, json, cli, onTerminal, refusal } = await start(t);
  const added = await json('domain add in.example.invalid --receive');
  t.like(added.records.at(-1), { type: 'MX', name: 'in.example.invalid', purpose: 'receiving' });
  t.true((await json('domain show in.example.invalid')).receives);
  const on = await onTerminal('domain receive sender.invalid on');
  t.is(on.code, 0);
  t.regex(on.stderr, /publish MX sender\.invalid 10 \S+,\s+by\s+hand/);
  t.regex(on.stderr, /route add '\*@sender\.invalid'/);

  const { id } = await json('route add Orders+*@sender.invalid --action webhook --largest 1M --dmarc reject');
  t.like(await json('route show', id.slice(-12)), {
    pattern: 'Orders+*@sender.invalid',
    largest: 2 ** 20,
    dmarc: 'reject',
    priority: 200,
  });
  await json('route add sender.invalid --action reject --reply', '550 5.7.1 No replies here');
  t.like(await json(`route change ${id} --priority 50 --largest 2M`), {
    priority: 50,
    largest: 2 ** 21,
    dmarc: 'reject',
  });
  t.like(await json(`route change ${id} --action reject --reply`, '551 5.1.6 Gone'), {
    reply: '551 5.1.6 Gone',
  });
  t.regex(await refusal(1, `route change ${id} --webhook all --pattern there.invalid`), /not registered/);
  t.like(await json(`route change ${id} --action webhook --priority 200`), {
    action: 'webhook',
    reply: null,
  });
  const listed = await json('route list');
  t.deepEqual(
    listed.map(({ priority }: { priority: number }) => priority),
    [200, 400],
  );
  t.regex((await cli('route list')).stdout.toString(), /refused with 550 5\.7\.1 No replies here/);
  t.like(await json('route check orders+1@sender.invalid'), { result: 'webhook', route: { id } });
  const rejected = await cli('route check ann@sender.invalid --json');
  t.is(rejected.code, 1);
  t.is(JSON.parse(rejected.stdout.toString()).result, 'reject');

  t.regex(await refusal(1, 'route add other.invalid --action store'), /not registered in this organization/);
  t.regex(
    await refusal(1, 'route add /(/@sender.invalid --action store'),
    /not an expression in RE2's syntax/,
  );
  t.regex(await refusal(2, 'route add a@sender.invalid --action forward'), /webhook, store, reject/);
  t.regex(await refusal(2, 'route add a@sender.invalid --action store --largest 1T'), /from 1K to 25M/);
  await json(`route remove ${id} --yes`);
  t.is((await json('route list')).length, 1);
  t.regex(await refusal(1, `route show ${id}`), /there is no route with the id/);
  await json('domain receive sender.invalid off');
  t.false((await json('domain show sender.invalid')).receives);
  t.is((await world.db('receiving_routes').select()).length, 1, 'routes are kept');
});

test('received mail is listed, shown and printed as it came', async (t) => {
  const { world, json, cli, refusal } = await start(t);
  const { orgId, db } = world;
  const raw = Buffer.from('From: a@b.invalid\r\n\r\n\0\xff', 'latin1');
  const hostile = receivedMail({
    orgId,
    raw,
    subject: 'Red \x1b[31m',
    recipients: ['Orders@sender.invalid'],
  });
  const mails = Array.from({ length: 1200 }, () => receivedMail({ orgId, subject: 'Other' }));
  for (let n = 0; n < mails.length; n += 200)
    await db.transaction((trx) =>
      insertReceived(trx, n === 0 ? [hostile, ...mails.slice(0, 200)] : mails.slice(n, n + 200)),
    );
  t.is((await json('received list')).length, 50);
  const [found, ...others] = await json('received list --to orders@SENDER --subject red');
  t.deepEqual([found.id, others.length], [hostile.id, 0], 'however many mails are newer');
  const shown = await cli(`received show ${hostile.id.slice(-12)}`);
  t.false(shown.stdout.toString().includes('\x1b'));
  t.regex(shown.stdout.toString(), /spf=none dkim=none dmarc=none/);
  t.deepEqual((await cli(`received raw ${hostile.id}`)).stdout, raw);
  t.is(Buffer.from((await json(`received raw ${hostile.id}`)).raw, 'base64').compare(raw), 0);
  t.regex(await refusal(1, `received raw ${orgId}`), /there is no received mail with the id/);

  const file = Buffer.from('PDF\0\xff', 'latin1');
  const head =
    'Content-Type: application/pdf; name=a.pdf\r\nContent-Disposition: attachment\r\nContent-Transfer-Encoding: base64';
  const attached = Buffer.from(`${head}\r\n\r\n${file.toString('base64')}\r\n`);
  const { summary } = readMail(attached);
  const withFile = receivedMail({ orgId, raw: attached, summary: { ...emptySummary, ...summary } });
  await db.transaction((trx) => insertReceived(trx, [withFile]));
  t.regex(
    (await cli(`received show ${withFile.id}`)).stdout.toString(),
    /0: a\.pdf \(application\/pdf, 5 bytes\)/,
  );
  t.deepEqual((await cli(`received attachment ${withFile.id} 0`)).stdout, file);
  t.like(await json(`received attachment ${withFile.id} 0`), {
    filename: 'a.pdf',
    content: file.toString('base64'),
  });
  t.regex(await refusal(1, `received attachment ${withFile.id} 1`), /has no attachment 1/);
});

test('received why follows the server: the MX record, the organization, the route, what came', async (t) => {
  const { world, json, cli } = await start(t);
  const { orgId, db, dns, config } = world;
  const name = 'sender.invalid';
  const why = async (address: string, code: 0 | 1) => {
    const answer = await cli(`received why ${address} --json`);
    t.is(answer.code, code, answer.stderr);
    const { result, reasons, mails } = JSON.parse(answer.stdout.toString());
    return { result, text: reasons.join(' ') as string, mails };
  };
  t.regex(
    (await why(`a@${name}`, 1)).text,
    /No organization of this server receives mail for sender\.invalid/,
  );
  await json(`domain receive ${name} on`);
  const none = await why(`a@${name}`, 1);
  t.is(none.result, 'no_route');
  t.regex(none.text, /has no MX record, so no mail for it comes here\. Publish MX 10/);
  dns.set({ [name]: { MX: ['10 elsewhere.invalid'] } });
  await json(`route add a@${name} --action store`);
  t.regex(
    (await why(`a@${name}`, 1)).text,
    /goes to elsewhere\.invalid.* The route a@sender\.invalid takes it/,
  );
  dns.set({ [name]: { MX: [`10 ${config.hostname}`] } });
  t.regex((await why(`A@${name}`, 0)).text, /kept, and in the feed.* Nothing of late was received/);
  const mail = receivedMail({ orgId, recipients: [`a@${name}`] });
  await db.transaction((trx) => insertReceived(trx, [mail]));
  t.is((await why(`a@${name}`, 0)).mails[0].id, mail.id);
  await db('received_stores').update({ bytes: config.receivedStore });
  t.regex((await why(`a@${name}`, 1)).text, /more is deferred \(452\)/);
});
