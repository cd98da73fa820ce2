/**
 * Item 13: what is not one's own. Mail of the server that is sent from an organization's domain, live mail under a test key, a
 * repeat of mail that a clock that was ahead has kept, and backlogs that a database role without rights names.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeKey } from '#accounts/create-key.ts';
import { callJson } from '#lab/ask.ts';
import { postern, run } from '#lab/cli.ts';
import { asRoleWithoutRights } from '#lab/database/databases.ts';
import { rowsOf, type Things, walkOwnership } from '#lab/ownership-walk.ts';
import { until } from '#lab/until.ts';
import { newId } from '#platform/base/id.ts';
import { serverOrgId } from '#platform/values/glossary.ts';
import { type Attack, type Verdict, verdict } from './attack.ts';
import { orgIdOf, type Scene } from './scene.ts';

const day = 86_400_000;

/** A key of the domain's organization with every right looks for an operator's link, in all ways in and in the files. */
async function serverMail(scene: Scene): Promise<Verdict> {
  const { url, db, dataDir, config, key } = scene;
  const to = 'boss@there.invalid';
  const { stdout, stderr } = await run(postern, ['user', 'create', '--operator', '--email', to, '--json'], {
    PATH: process.env.PATH,
    POSTERN_DATA_DIR: dataDir,
    POSTERN_HOSTNAME: config.hostname,
    POSTERN_DNS_SERVERS: config.dnsServers.join(' '),
    POSTERN_NOTICES_FROM: 'Postern <notices@sender.invalid>',
  });
  const token: string = JSON.parse(stdout.toString()).url.split('/').at(-1);
  const delivery = await until(
    () => db('deliveries').where({ org_id: serverOrgId, status: 'delivered' }).first(),
    {
      what: () => `the link to be delivered; ${stderr}`,
    },
  );
  const named = { org: serverOrgId, email: delivery.email_id, address: to };
  const marks = [to, token, delivery.email_id, delivery.id, serverOrgId];
  const rows = () => rowsOf(db, serverOrgId);
  const things: Things = { name: "the server's mail", named, marks, secrets: [token], rows };
  const orgId = await orgIdOf(db, key);
  const visitor = { name: 'a key with full access', key, orgId, foreign: [things] };
  const { requests, faults } = await walkOwnership({ url }, [visitor]);
  const files = ['postern.sqlite', 'postern.sqlite-wal', 'mail.log'].map((name) =>
    readFile(join(dataDir, name), 'latin1').catch(() => ''),
  );
  const isKept = (await Promise.all(files)).some((text) => text.includes(token));
  return verdict(
    `${requests} requests for the link of an operator`,
    [faults.length === 0, `${faults.length} faults; ${faults[0]}`],
    [!isKept, 'the link is kept in the clear'],
  );
}

/** A test key with every right makes a live key, and reads, moves and cancels live mail. */
async function testKey(scene: Scene): Promise<Verdict> {
  const { url, db } = scene;
  const live = await scene.addTenant();
  const orgId = await orgIdOf(db, live);
  const scheduledAt = new Date(Date.now() + day).toISOString();
  const body = { from: 'app@sender.invalid', to: 'live@there.invalid', subject: 'x', text: 'x', scheduledAt };
  const { emailId: email } = JSON.parse(
    (await callJson(`${url}/api/public/email/send`, live, 'POST', body)).text,
  );
  const { id: liveKey } = await db('api_keys').where({ org_id: orgId }).first('id');
  const wanted = { orgId, label: 'test', scopes: ['full_access'], test: true };
  const { key } = await makeKey(db, wanted, Date.now());
  const made = await callJson(`${url}/api/public/keys`, key, 'POST', {
    label: 'live',
    scopes: ['full_access'],
    test: false,
  });
  const named = { org: orgId, email, key: liveKey };
  const marks = ['live@there.invalid', email, liveKey];
  const things: Things = {
    name: 'live things',
    named,
    marks,
    secrets: [],
    rows: () => rowsOf(db, orgId, true),
  };
  const visitor = { name: 'a test key', key, orgId, foreign: [things] };
  const { requests, faults } = await walkOwnership({ url }, [visitor]);
  const keys = await db('api_keys').where({ org_id: orgId, is_test: false });
  return verdict(
    `${requests} requests of a test key`,
    [made.status === 403 && keys.length === 1, 'a test key has made a live key'],
    [faults.length === 0, `${faults.length} faults; ${faults[0]}`],
  );
}

/** The answers that a clock that was two hours ahead has kept. */
async function keptAhead(scene: Scene): Promise<Verdict> {
  const key = await scene.addTenant();
  const body = { from: 'app@sender.invalid', to: 'again@there.invalid', subject: 'Your code', text: 'x' };
  const send = async () =>
    JSON.parse((await callJson(`${scene.url}/api/public/email/send`, key, 'POST', body)).text).emailId;
  const first = await send();
  await scene.db('idempotency').where({ email_id: first }).increment('created_at', 7_200_000);
  await sleep(2_100);
  const second = await send();
  return verdict('a send after the clock was set right', [first !== second, 'it was dropped as a repeat']);
}

/** Backlogs that are none, named to all nodes while mail is scheduled. */
async function notified({ url, db, key, config }: Scene): Promise<Verdict> {
  const send = async (fields: object) => {
    const body = { from: 'app@sender.invalid', to: 'due@there.invalid', text: 'x', ...fields };
    return JSON.parse((await callJson(`${url}/api/public/email/send`, key, 'POST', body)).text).emailId;
  };
  const scheduledAt = new Date(Date.now() + 3_000).toISOString();
  const ids = [await send({ subject: 'scheduled', scheduledAt })];
  await asRoleWithoutRights(config.databaseUrl!, async (query) => {
    for (const lane of [
      ['there.invalid', 'no-id'],
      ['there.invalid\u0000', newId()],
      [7, newId()],
    ])
      for (let n = 0; n < 100; n++)
        await query('select pg_notify($1, $2)', [
          'postern',
          JSON.stringify({ from: 'other', lanes: [lane] }),
        ]);
  });
  ids.push(await send({ subject: 'at once' }));
  const delivered = () => db('deliveries').whereIn('email_id', ids).where({ status: 'delivered' });
  const isDone = await until(async () => (await delivered()).length === ids.length, {
    timeout: 20_000,
  }).catch(() => false);
  return verdict('300 notifications of a role without rights', [isDone, 'due mail is not sent any more']);
}

export const ownership: Attack[] = [
  {
    item: 13,
    name: 'the link of an operator, by the key of its domain',
    timeoutMs: 120_000,
    run: serverMail,
  },
  { item: 13, name: 'a test key with full access and live mail', timeoutMs: 120_000, run: testKey },
  { item: 13, name: 'a mail like one that a fast clock has kept', run: keptAhead },
  { item: 13, name: 'notifications of backlogs that are none', place: 'PostgreSQL', run: notified },
];
