/**
 * The lists of bounces of SendGrid and Mailgun say what the host said, as programs that clean address lists read them
 * (the services' own SDKs: sendgrid-nodejs, mailgun.js).
 */
import sendgridClient from '@sendgrid/client';
import test, { type ExecutionContext } from 'ava';
import Mailgun from 'mailgun.js';
import { suppressAddress } from '#accounts/suppression-list.ts';
import { whyOf } from '#front/dashboard/pages/suppressions/suppression-words.ts';
import { journeyKinds } from '#lab/database/databases.ts';
import { goldenMail, startReturns } from '#lab/scenes/returns.ts';
import { startWorld, type World, type WorldOptions } from '#lab/scenes/world.ts';

const domain = 'sender.invalid';

const replies: Record<string, string> = {
  gone: '550 5.1.1 The email account that you tried to reach does not exist.',
  closed: '554 5.2.1 The account is closed (5.9.9)',
  bare: '550 No such user here',
  full: '452 4.2.2 mailbox full',
};

const exchangers = [
  { script: { rcpt: ({ address }: { address?: string }) => replies[address!.split('@')[0]!] } },
];

async function sendgridBounces(world: World): Promise<{ email: string; reason: string; status: string }[]> {
  const client = new (sendgridClient.constructor as new () => typeof sendgridClient)();
  client.setApiKey(`SG.${world.key}`);
  client.setDefaultHeader('Authorization', `Bearer ${world.key}`);
  client.setDefaultRequest('baseUrl', world.url());
  const ask = async (path: string) =>
    (await client.request({ method: 'GET', url: `/v3/suppression/bounces${path}` }))[1];
  const list = await ask('');
  for (const one of list) {
    const alone = await ask(`/${encodeURIComponent(one.email)}`);
    if (JSON.stringify(alone) !== JSON.stringify([one])) throw new Error(JSON.stringify(alone));
  }
  return list;
}

interface MailgunBounce {
  address: string;
  code: number | string;
  error: string;
}

function mailgunOf(world: World) {
  // biome-ignore lint/suspicious/noExplicitAny: the package's type of its default export is that of its CommonJS form
  const client = new (Mailgun as any)(FormData).client({ username: 'api', key: world.key, url: world.url() });
  const { suppressions } = client as ReturnType<InstanceType<typeof Mailgun.default>['client']>;
  return {
    add: (bounces: object) => suppressions.create(domain, 'bounces', bounces as never),
    get: (address: string) =>
      suppressions.get(domain, 'bounces', address) as unknown as Promise<MailgunBounce>,
    list: async () => (await suppressions.list(domain, 'bounces')).items as unknown as MailgunBounce[],
  };
}

/** Each address with its status in SendGrid's list, and with its code and its words in both. */
async function holdBounces(
  t: ExecutionContext,
  world: World,
  wanted: Record<string, [code: number, status: string, said: string]>,
) {
  const sendgrid = await sendgridBounces(world);
  t.deepEqual(
    Object.fromEntries(sendgrid.map(({ email, reason, status }) => [email, [status, reason]])),
    Object.fromEntries(Object.entries(wanted).map(([email, [, status, said]]) => [email, [status, said]])),
  );
  const mailgun = mailgunOf(world);
  const found = await mailgun.list();
  t.deepEqual(
    Object.fromEntries(found.map(({ address, code, error }) => [address, [Number(code), error]])),
    Object.fromEntries(Object.entries(wanted).map(([email, [code, , said]]) => [email, [code, said]])),
  );
  for (const one of found)
    t.like(await mailgun.get(one.address), { code: Number(one.code), error: one.error });
}

for (const database of journeyKinds) {
  const start = (t: ExecutionContext, options: WorldOptions = {}) =>
    startWorld(t, { database, exchangers, ...options });

  test(`${database}: bounces of a session have the reply, its code and its status`, async (t) => {
    const world = await start(t, { zone: { 'nomail.invalid': { MX: ['0 .'] } } });
    const to = ['gone', 'closed', 'bare'].map((name) => `${name}@there.invalid`);
    const { emailId } = (await world.send({ to: [...to, 'ann@nomail.invalid'] })).body;
    await world.when(emailId, ({ status }) => status === 'bounced');
    const { ann, ...others } = Object.fromEntries(
      (await mailgunOf(world).list()).map((one) => [one.address.split('@')[0]!, one]),
    );
    t.is(Object.keys(others).length, 3);
    t.regex(ann!.error, /mail/);
    await holdBounces(t, world, {
      'ann@nomail.invalid': [550, '5.1.2', ann!.error],
      'bare@there.invalid': [550, '5.1.1', '550 No such user here'],
      'closed@there.invalid': [554, '5.2.1', replies.closed!],
      'gone@there.invalid': [550, '5.1.1', replies.gone!],
    });
  });

  test(`${database}: bounces that came back by mail have the reply that the report quotes`, async (t) => {
    const world = await startReturns(t, { database });
    const reports: [name: string, code: number, status: string, quoted: RegExp][] = [
      ['postfix-local-unknown', 550, '5.1.1', /^5\.1\.1 unknown user/],
      ['exim-report', 550, '5.1.1', /550/],
      ['gmail-report', 550, '5.1.1', /550/],
    ];
    const wanted: Parameters<typeof holdBounces>[2] = {};
    for (const [name, code, status, quoted] of reports) {
      const to = `${name}@there.invalid`;
      const { emailId } = (await world.send({ to })).body;
      await world.when(emailId, (email) => email.status === 'delivered');
      const path = await world.returnPath(emailId);
      await world.comesBack(path, goldenMail(name, path, to));
      const { recipients } = await world.when(emailId, (email) => email.status === 'bounced');
      const { diagnostic } = recipients[0].bounce;
      t.regex(diagnostic, quoted);
      wanted[to] = [code, status, diagnostic];
    }
    await holdBounces(t, world, wanted);
  });

  test(`${database}: a mailbox that stayed full for days is a bounce, with the last reply`, async (t) => {
    const world = await start(t);
    for (let day = 0; day < 3; day += 1) {
      const { emailId } = (await world.send({ to: 'full@there.invalid', subject: `Mail ${day}` })).body;
      await world.when(emailId, ({ status }) => status === 'deferred');
      await world.clock.jump('49h');
      await world.when(emailId, ({ status }) => status === 'expired');
    }
    await holdBounces(t, world, { 'full@there.invalid': [452, '4.2.2', replies.full!] });
    const headers = { 'x-postmark-server-token': world.key, authorization: '', accept: 'application/json' };
    const dump = await world.call('GET', '/message-streams/outbound/suppressions/dump', { headers });
    t.like(dump.body.Suppressions, [{ SuppressionReason: 'HardBounce', Origin: 'Recipient' }]);
    const [reason] = await world.db('suppressions').pluck('reason');
    t.like(whyOf(reason), { badge: 'Bounced', isByEmail: true });
  });

  test(`${database}: bounces that were added by hand are those that were given`, async (t) => {
    const world = await start(t);
    const { add } = mailgunOf(world);
    await add({ address: 'a@x.invalid', code: 551, error: '550 5.1.1 No such user' });
    await add([
      { address: 'b@x.invalid', code: '554', error: 'Mailbox unavailable' },
      { address: 'c@x.invalid', error: 'smtp; 452-4.2.2 Over quota' },
      { address: 'd@x.invalid', code: 421, error: 'é'.repeat(500) },
    ]);
    const change = { db: world.db, orgId: world.orgId, now: world.clock.now() };
    const byHand = {
      'e@x.invalid': 'hard bounce: unknown_user',
      'f@x.invalid': 'hard bounce: 553 5.1.3 No such address',
      'g@x.invalid': 'hard bounce: left the company in 2019',
    };
    for (const [address, reason] of Object.entries(byHand)) await suppressAddress(change, address, reason);
    await suppressAddress(change, 'h@x.invalid', 'left the company');
    await holdBounces(t, world, {
      'a@x.invalid': [551, '5.1.1', '550 5.1.1 No such user'],
      'b@x.invalid': [554, '5.0.0', 'Mailbox unavailable'],
      'c@x.invalid': [452, '4.2.2', 'smtp; 452-4.2.2 Over quota'],
      'd@x.invalid': [421, '4.0.0', 'é'.repeat(500)],
      'e@x.invalid': [550, '5.1.1', 'hard bounce: unknown_user'],
      'f@x.invalid': [553, '5.1.3', '553 5.1.3 No such address'],
      'g@x.invalid': [550, '5.0.0', 'hard bounce: left the company in 2019'],
    });
  });
}

test('Mailgun: bounces are added as a form, too; a code that is none is refused, and the address alone is enough', async (t) => {
  const world = await startWorld(t);
  const { get } = mailgunOf(world);
  const authorization = `Basic ${Buffer.from(`api:${world.key}`).toString('base64')}`;
  const post = (fields: Record<string, string>) =>
    fetch(`${world.url()}/v3/${domain}/bounces`, {
      method: 'POST',
      headers: { authorization },
      body: new URLSearchParams(fields),
    });
  t.is((await post({ address: 'a@x.invalid', code: '550', error: 'Gone\r\nsince 2019' })).status, 200);
  t.like(await get('a@x.invalid'), { code: 550, error: 'Gone since 2019' });
  for (const fields of [{}, { code: '' }, { code: '', error: '' }] as Record<string, string>[])
    t.is((await post({ address: 'b@x.invalid', ...fields })).status, 200);
  t.like(await get('b@x.invalid'), { code: 550, error: '' });
  for (const code of ['55', 'x', '5555', '199', '٥٥٠']) {
    const answer = await post({ address: 'c@x.invalid', code });
    t.is(answer.status, 400, code);
    t.regex(await answer.text(), /code: must be the code of an SMTP reply, such as 550/);
  }
  t.is((await world.db('suppressions')).length, 2);
});
