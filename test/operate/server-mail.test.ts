/**
 * Mail of the server itself is the server's, whatever domain it is sent from: the organization of the domain neither sees nor
 * stops it, and its link is nowhere but in the mail.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { findOrganization, listOrganizations } from '#accounts/rows/organizations.ts';
import { pauseOrganization } from '#accounts/rows/pauses.ts';
import { addSuppression, suppressionOf } from '#accounts/rows/suppressions.ts';
import { changeUser, insertUser } from '#accounts/rows/users.ts';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { cliOf, createCli } from '#lab/cli.ts';
import { type DatabaseKind, journeyKinds } from '#lab/database/databases.ts';
import { partOf } from '#lab/mail.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import type { ReportedFailure } from '#mail/returned/parse-result.ts';
import { recordBounces } from '#mail/returned/rows/record-bounces.ts';
import { sendNotices } from '#operate/notices/send-notices.ts';
import { serverOrgId } from '#platform/values/glossary.ts';
import { isSealed, unpackMessage } from '#platform/values/packed-message.ts';

const settings = { POSTERN_NOTICES_FROM: 'Postern <notices@sender.invalid>' };
const to = 'olga@there.invalid';

/** An operator is invited while the exchanger defers. */
async function invited(t: ExecutionContext, database: DatabaseKind) {
  const world = await startWorld(t, { database, settings });
  const { db, clock, mx } = world;
  mx[0]!.script = { rcpt: () => '451 4.3.0 later' };
  const operator = createBrowser(world);
  await setUp(operator, world);
  const base = `/dashboard/o/${world.orgId}`;
  await operator.get(`${base}/team`);
  await operator.submit('/team', { email: to, name: 'Olga', role: 'owner' });
  const mail = () => db('emails').where({ org_id: serverOrgId }).first();
  await clock.passUntil(async () => (await db('deliveries').where({ status: 'deferred' })).length === 1);
  return { world, operator, base, emailId: (await mail()).id as string };
}

const disabledWebhook = (org_id: string) => ({
  id: '01a1ffff-0000-7000-8000-000000000000',
  org_id,
  url: 'https://app.invalid/hook',
  secret: 'x',
  types: '[]',
  after_position: 0,
  status: 'disabled',
  reason: 'it answered 500',
  created_at: 1,
  updated_at: 1,
});

/** Everything in the database and the files beside it, with messages unpacked. */
async function everything({ db, config }: World, database: DatabaseKind): Promise<string> {
  const names: string[] =
    database === 'sqlite'
      ? await db('sqlite_master').where({ type: 'table' }).pluck('name')
      : await db('information_schema.tables').whereRaw('table_schema = current_schema()').pluck('table_name');
  const stored: Buffer[] = await db('messages').pluck('raw');
  const texts = stored.filter((raw) => !isSealed(raw)).map((raw) => unpackMessage(raw).toString('latin1'));
  for (const name of names) {
    for (const value of (await db(name)).flatMap((row) => Object.values(row)))
      texts.push(Buffer.isBuffer(value) ? value.toString('latin1') : String(value));
  }
  for (const file of await readdir(config.dataDir, { withFileTypes: true, recursive: true }))
    if (file.isFile()) texts.push(await readFile(join(file.parentPath, file.name), 'latin1'));
  return texts.join('\n');
}

for (const kind of journeyKinds) {
  test(`${kind}: an invitation from an organization's domain is nowhere in it, cannot be stopped by it, and leaves no link`, async (t) => {
    const { world, operator, base, emailId } = await invited(t, kind);
    const { db, clock, orgId, mx } = world;
    const api = async (method: string, path: string, body?: object) =>
      world.call(method, path, body ? { body: JSON.stringify(body) } : {});

    for (const [method, path] of [
      ['GET', `/api/public/email/${emailId}`],
      ['POST', `/api/public/email/${emailId}/cancel`],
      ['GET', `/compat/resend/emails/${emailId}`],
      ['GET', `/compat/resend/emails/${emailId}/attachments`],
      ['POST', `/compat/resend/emails/${emailId}/cancel`],
    ])
      t.is((await api(method!, path!)).status, 404, path);
    const postmark = { headers: { 'x-postmark-server-token': world.key } };
    for (const view of ['details', 'dump']) {
      const path = `/compat/postmark/messages/outbound/${emailId}/${view}`;
      t.true((await world.call('GET', path, postmark)).status >= 400, path);
    }
    t.deepEqual((await api('GET', '/api/public/emails')).body.emails, []);
    const { events } = (await api('GET', '/api/public/events')).body;
    t.notRegex(JSON.stringify(events), /olga@there/);
    for (const view of ['', '/preview', '/source', '/attachments/1'])
      for (const id of [orgId, serverOrgId])
        t.is((await operator.get(`/dashboard/o/${id}/emails/${emailId}${view}`)).status, 404);
    t.notRegex((await operator.get(`${base}/emails`)).text, /invited/);
    t.notRegex((await operator.get(`${base}/emails/export`)).html, /invited/);
    t.is((await operator.get(`/dashboard/o/${serverOrgId}`)).status, 404);
    t.is(await findOrganization(db, serverOrgId), null);
    t.deepEqual(
      (await listOrganizations(db)).map(({ id }) => id),
      [orgId],
    );
    const queue = '/dashboard/queue/to/there.invalid';
    await clock.passUntil(async () => (await operator.get(queue)).status === 200);
    t.regex((await operator.get(queue)).text, /olga@there\.invalid 451 4\.3\.0 later this server/);

    await addSuppression(db, suppressionOf(orgId, to, 'manual'), clock.now());
    await pauseOrganization(db, orgId, { since: clock.now(), reason: 'abuse' });
    const cli = cliOf(t, world, clock);
    t.is((await cli.json(`email show ${emailId}`)).recipients[0].address, to);
    t.is((await cli.json('email list --server'))[0].emailId, emailId);
    t.notRegex((await cli.cli('', 'org', 'list')).stdout.toString(), /0000-7000/);
    const source = await cli.cli('', 'email', 'source', emailId);
    t.is(source.code, 1);
    t.regex(source.stderr, /its link is for its recipient only/);

    mx[0]!.script = {};
    await clock.passUntil(() => mx[0]!.messages.length === 1, { step: '10s' });
    const link = /\/dashboard\/welcome\/([\w-]+)/.exec(partOf(mx[0]!.messages[0]!.raw, 'text/plain'))!;
    t.is((await createBrowser(world).get(link[0])).status, 200);
    await clock.passUntil(async () => (await db('deliveries').where({ status: 'delivered' })).length === 1);
    t.deepEqual(await db('messages').where({ email_id: emailId }).pluck('size'), [0]);
    t.false((await everything(world, kind)).includes(link[1]!), 'the link is kept');
    t.deepEqual(await db('statistics').where({ org_id: orgId }), []);
    t.is((await db('emails').where({ org_id: orgId })).length, 0);
  });
}

test('its link is in no row while it waits, either, and what is canceled keeps no message', async (t) => {
  const { world, emailId } = await invited(t, 'sqlite');
  const { db, mx } = world;
  const waiting = await everything(world, 'sqlite');
  const { json } = cliOf(t, world, world.clock);
  t.deepEqual((await json(`email cancel ${emailId}`)).canceled, [to]);
  t.deepEqual(await db('messages').where({ email_id: emailId }).pluck('size'), [0]);
  t.notRegex(waiting, /dashboard\/welcome\/[\w-]{20}/);
  t.is(mx[0]!.messages.length, 0);
});

test('two resets in a second are two mails; a bounce suppresses nobody, and its copy of the mail is not kept', async (t) => {
  const world = await startWorld(t, { settings, database: 'sqlite' });
  const { db, clock, config, dns, mx } = world;
  await insertUser(db, { email: to, name: 'Olga', isOperator: true }, clock.now());
  const { json } = createCli(t, {
    ...settings,
    POSTERN_DATA_DIR: config.dataDir,
    POSTERN_DNS_SERVERS: dns.address,
  });
  const links = [(await json(`user reset ${to}`)).url, (await json(`user reset ${to}`)).url];
  await clock.passUntil(() => mx[0]!.messages.length === 2);
  t.deepEqual(
    mx[0]!.messages
      .map(({ raw }) => links.findIndex((link) => partOf(raw, 'text/plain').includes(link)))
      .sort(),
    [0, 1],
  );
  await clock.passUntil(async () => (await db('deliveries').where({ status: 'delivered' })).length === 2);
  const { id: deliveryId } = await db('deliveries').first('id');
  const raw = Buffer.from(`Subject: failed\r\n\r\n${links[0]}`);
  const mail = { at: clock.now(), size: raw.length, raw, sender: '', recipient: 'x@x.invalid', peer: '::1' };
  const bounce = {
    type: 'hard',
    category: 'no_mailbox',
    fault: 'recipient',
    diagnostic: '550 5.1.1',
  } as const;
  const reading: ReportedFailure = {
    kind: 'failed',
    format: 'dsn',
    recipient: to,
    reportedBy: null,
    bounce,
    rule: 'x',
  };
  const [outcome] = await recordBounces(db, [{ deliveryId, reading, mail }], ['no_mailbox']);
  t.is((outcome as { transition: { status: string } }).transition.status, 'bounced');
  t.deepEqual(
    (await db('inbound_mails')).map((row) => row.raw.length),
    [0],
  );
  t.deepEqual(await db('suppressions'), []);
});

test('a notice that could not be sent counts as not told, and is told when it can be', async (t) => {
  const world = await startWorld(t, { database: 'sqlite', settings });
  const { db, clock, mx } = world;
  const id = (await insertUser(db, { email: to, name: 'Olga', isOperator: true }, clock.now()))!;
  await changeUser(db, id, { passwordHash: 'x' });
  await db('webhooks').insert(disabledWebhook(world.orgId));
  const told: string[] = [];
  let isReady = true;
  const run = sendNotices({
    db,
    config: world.config,
    now: clock.now,
    baseUrl: world.url,
    onError: () => {},
    mailer: {
      isReady: async () => true,
      async send(mail) {
        if (isReady) told.push(...mail.to);
        return isReady;
      },
    },
  });
  const pass = async (sends: boolean) => {
    isReady = sends;
    await clock.jump('61s');
    await run();
    return (await db('notices')).length;
  };
  await world.stop();
  t.is(await pass(false), 0);
  t.is(await pass(true), 1);
  t.deepEqual(told, [to]);
  t.is(mx[0]!.messages.length, 0);
});
