/** `postern status`, cause by cause, from rows of both databases; test/slow/ten-troubles.test.ts has the same from real exchangers. */
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import sqlite3 from 'sqlite3';
import { v7 as uuid } from 'uuid';
import { kinds } from '#lab/database/databases.ts';
import { minute, now, openQueue } from '#lab/database/queue-rows.ts';
import type { ProblemCause } from '#mail/deliver/problem-cause.ts';
import type { DestinationState } from '#mail/record/rows/destination-status-rows.ts';
import { hourMs } from '#mail/record/rows/statistics.ts';
import { checkDatabase } from '#operate/doctor/checks/database.ts';
import { isWell, readStatus, verdictText } from '#operate/status/read-status.ts';
import { noteBackup } from '#platform/database/admin/last-backup.ts';
import { noteLeapIn } from '#platform/database/admin/last-leap.ts';
import { loadConfig } from '#platform/settings/config.ts';

const atRest = { connections: 0, limit: 5, waiting: 0, circuit: null, busySince: null };

function failing(cause: ProblemCause, fields: object = {}): Partial<DestinationState> {
  const problem = { cause, category: 'other', since: now - 2 * minute, at: now - minute, count: 3 };
  return { problem: { ...problem, reply: `450 ${cause}`, host: null, bouncedAt: null, ...fields } };
}

async function open(t: ExecutionContext, kind: (typeof kinds)[number], settings: object = {}) {
  const queue = await openQueue(t, kind);
  const config = loadConfig({ ...queue.settings, POSTERN_HOSTNAME: 'postern.invalid', ...settings });
  return {
    ...queue,
    async publish(name: string, state: Partial<DestinationState>, node = 'a'): Promise<void> {
      const all = { ...atRest, lastReply: null, lastReplyAt: null, ...state };
      await queue.db('destinations').insert({ name, node, state: JSON.stringify(all), at: now });
    },
    async read(served = true) {
      const status = await readStatus({ db: queue.db, config, now, served });
      const named = status.needs.map(({ cause, subject, severity }) => `${cause} ${subject} ${severity}`);
      return { ...status, named };
    },
  };
}

for (const kind of kinds) {
  test(`${kind}: nothing is wrong`, async (t) => {
    const { add, publish, read } = await open(t, kind);
    await add({ recipient: 'ann@fine.invalid' });
    await publish('fine.invalid', { connections: 3, waiting: 10 });
    const status = await read();
    t.deepEqual(status.needs, []);
    t.true(isWell(status));
    t.is(verdictText(status), 'All good.');
  });

  test(`${kind}: trouble of a destination counts while mail waits for it, or has just bounced`, async (t) => {
    const { add, publish, read, db } = await open(t, kind);
    for (const name of ['grey', 'long', 'many', 'shut']) await add({ recipient: `ann@${name}.invalid` });
    await add(...Array.from({ length: 100 }, (_, at) => ({ recipient: `${at}@many.invalid` })));
    await publish('grey.invalid', failing('greylisting'));
    await publish('long.invalid', failing('hanging', { since: now - 61 * minute }));
    await publish('mx.many.invalid', failing('dns_failing'));
    await db('routes').insert({ domain: 'many.invalid', destination: 'mx.many.invalid' });
    await publish('shut.invalid', failing('unreachable'));
    await publish('empty.invalid', failing('unreachable'));
    await publish('bounced.invalid', failing('blocklisted', { bouncedAt: now - minute }));
    await db('suspensions').insert({
      destination: 'shut.invalid',
      reason: 'x',
      created_at: now,
      until: now + minute,
    });
    const status = await read();
    t.deepEqual(status.named, [
      'blocklisted bounced.invalid act',
      'dns_failing mx.many.invalid act',
      'hanging long.invalid act',
      'greylisting grey.invalid watch',
    ]);
    t.is(status.needs[1]!.figure, '101 waiting, 3 attempts failed');
    t.is(verdictText(status), '3 problems need action, 1 to watch.');
  });

  test(`${kind}: young trouble needs action by its share of the waiting mail, or because mail there is about to expire`, async (t) => {
    const { add, publish, read } = await open(t, kind);
    const mails = (count: number, name: string, fields: object = {}) =>
      add(...Array.from({ length: count }, (_, at) => ({ recipient: `${at}@${name}.invalid`, ...fields })));
    await mails(110, 'few');
    await mails(500, 'fine');
    await publish('few.invalid', failing('refusing'));
    const named = async () => (await read()).named;
    t.deepEqual(await named(), ['refusing few.invalid watch'], 'the hundredth mail of many is no alarm');
    await mails(90, 'few');
    t.deepEqual(await named(), ['refusing few.invalid act'], 'a quarter of all that waits');
    await mails(2, 'urgent', { expires_at: now + 30 * minute });
    await publish('urgent.invalid', failing('unreachable', { since: now - 20 * minute }));
    await mails(2, 'young', { expires_at: now + 30 * minute });
    await publish('young.invalid', failing('unreachable'));
    const status = await read();
    t.true(status.named.includes('unreachable urgent.invalid act'));
    t.true(status.named.includes('unreachable young.invalid watch'));
    const urgent = status.needs.find(({ subject }) => subject === 'urgent.invalid')!;
    t.regex(urgent.advice, /tell its postmaster in another way than by mail\.$/, 'it names the act');
  });

  test(`${kind}: a full disk of theirs, also while it slows us down, and a network of ours that lets nothing out`, async (t) => {
    const { add, publish, read } = await open(t, kind);
    await add({ recipient: 'ann@full.invalid' }, { recipient: 'ann@local.invalid' });
    await publish('full.invalid', {
      ...failing('storage_full'),
      busySince: now - 2 * minute,
      busyAt: now - minute,
    });
    await publish('local.invalid', failing('no_route'));
    const { named, needs } = await read();
    t.deepEqual(named, ['no_route local.invalid watch', 'storage_full full.invalid watch']);
    t.is(needs[0]!.command, 'postern doctor');
  });

  test(`${kind}: throttled, with its rate and the time to drain, also between two retries`, async (t) => {
    const { add, publish, read } = await open(t, kind);
    await add(...Array.from({ length: 60 }, (_, at) => ({ recipient: `${at}@slow.invalid` })));
    await publish('slow.invalid', {
      busySince: now - 20 * minute,
      busyAt: now - 5 * minute,
      busyReply: '421 4.7.28 too fast',
      accepted: { since: now - 10 * minute, count: 20, ms: 20_000 },
    });
    const [need] = (await read()).needs;
    t.like(need, { cause: 'throttled', severity: 'watch', since: now - 20 * minute });
    t.is(need!.figure, '60 waiting, 2 a minute, 30 minutes to drain');
    t.is(need!.reply, '421 4.7.28 too fast');
    t.is(need!.command, 'postern queue slow slow.invalid --per-minute 2 --for 2h');
  });

  test(`${kind}: of very many destinations in trouble the first are listed, and the others counted`, async (t) => {
    const { add, publish, read } = await open(t, kind);
    for (let at = 0; at < 25; at++) {
      await add({ recipient: `ann@d${at}.invalid` });
      await publish(`d${at}.invalid`, failing('unreachable'));
    }
    const status = await read();
    t.is(status.needs.length, 20);
    t.is(status.more, 5);
    t.is(verdictText(status), 'No problem needs action, 25 to watch.');
  });

  test(`${kind}: of two nodes, one has no way out and the other has`, async (t) => {
    const { add, publish, read } = await open(t, kind);
    for (const name of ['one', 'two', 'down']) await add({ recipient: `ann@${name}.invalid` });
    const silent = { silentSince: 'since', since: now - 3 * minute };
    await publish('one.invalid', failing('unreachable', silent));
    await publish('two.invalid', failing('unreachable', { ...silent, silentSince: 'at' }));
    await publish('two.invalid', { connections: 2 }, 'b');
    await publish('down.invalid', failing('unreachable'), 'b');
    const status = await read();
    const node = kind === 'postgres' ? 'node a' : 'this server';
    t.deepEqual(status.named, [`no_way_out ${node} act`, 'unreachable down.invalid watch']);
    t.is(status.needs[0]!.figure, '2 waiting, port 25 to all 2 hosts is refused or silent');
    t.is(status.needs[0]!.since, now - 3 * minute);
    t.deepEqual(status.folded.map(({ subject }) => subject).sort(), ['one.invalid', 'two.invalid']);
  });

  test(`${kind}: failures are no way out only if they begin with the silence, and are of several destinations`, async (t) => {
    const { add, publish, read } = await open(t, kind);
    for (const name of ['one', 'two', 'three']) await add({ recipient: `ann@${name}.invalid` });
    for (const name of ['one', 'two'])
      await publish(`${name}.invalid`, failing('unreachable', { silentSince: 'at' }));
    await publish('three.invalid', failing('refusing'));
    t.true((await read()).needs.every(({ cause }) => cause !== 'no_way_out'));
  });

  test(`${kind}: a domain that has a destination is not counted again under its own name`, async (t) => {
    const { add, publish, read, db } = await open(t, kind);
    await add({ recipient: 'ann@one.invalid' });
    await publish('one.invalid', failing('dns_failing'));
    await publish('mx.one.invalid', failing('unreachable'));
    t.deepEqual((await read()).named, ['dns_failing one.invalid watch']);
    await db('routes').insert({ domain: 'one.invalid', destination: 'mx.one.invalid' });
    t.deepEqual((await read()).named, ['unreachable mx.one.invalid watch']);
  });

  test(`${kind}: before the first verified domain it names the next command`, async (t) => {
    const { add, db, newOrg, read } = await open(t, kind);
    await db('organizations').delete();
    const said = async () => {
      const status = await read();
      t.is(isWell(status), status.setUp === null);
      return status.setUp;
    };
    t.is(await said(), 'postern org create --name NAME');
    t.is(verdictText(await read()), 'Not set up: no domain is verified.');
    const orgId = await newOrg('Acme');
    t.is(await said(), 'postern domain add DOMAIN --org Acme');
    const domain = { org_id: orgId, dkim_selector: 's', dkim_public_key: 'p', dkim_private_key: 'k' };
    await db('domains').insert({
      id: uuid(),
      created_at: now,
      name: 'acme.invalid',
      status: 'pending',
      ...domain,
    });
    t.is(await said(), 'postern domain verify acme.invalid --org Acme');
    await db('domains').update({ status: 'verified' });
    t.is(await said(), null);
    await db('domains').delete();
    await add({ org_id: orgId });
    t.is(await said(), null, 'mail has been accepted');
  });

  test(`${kind}: what the operator has ordered, each mail once, with the command that ends it`, async (t) => {
    const { add, db, newOrg, read } = await open(t, kind);
    const paused = await newOrg('Late & Sons');
    await add({ recipient: 'ann@held.invalid', status: 'held', due_at: null, updated_at: now - 5 * minute });
    await add({ recipient: 'ann@ruled.invalid', status: 'held', due_at: null });
    await add({ recipient: 'ben@ruled.invalid' });
    for (const name of ['shut', 'slow']) await add({ recipient: `ann@${name}.invalid` });
    await add({ recipient: 'ann@other.invalid', org_id: paused });
    const order = { created_at: now - minute, reason: 'x' };
    await db('suspensions').insert({ destination: 'shut.invalid', until: now + minute, ...order });
    await db('destination_rules').insert([
      { destination: 'ruled.invalid', kind: 'hold', per_minute: null, until: null, ...order },
      { destination: 'slow.invalid', kind: 'slow', per_minute: 6, until: now + minute, ...order },
    ]);
    await db('organizations')
      .where({ id: paused })
      .update({ paused_at: now - minute, paused_reason: 'x' });
    const status = await read();
    t.deepEqual(
      status.orders.map(({ kind: what, subject, count, since, command }) => [
        what,
        subject,
        count,
        (now - since!) / minute,
        command,
      ]),
      [
        ['held', null, 1, 5, 'postern queue release --status held --reason R'],
        ['suspend', 'shut.invalid', 1, 1, 'postern queue resume shut.invalid --reason R'],
        ['hold', 'ruled.invalid', 2, 1, 'postern queue rule ruled.invalid none'],
        ['slow', 'slow.invalid', 1, 1, 'postern queue resume slow.invalid --reason R'],
        ['pause', 'Late & Sons', 1, 1, "postern org resume 'Late & Sons' --reason R"],
      ],
    );
    t.true(isWell(status), 'an order is no trouble');
  });

  test(`${kind}: no server, and since when mail is due`, async (t) => {
    const { add, read } = await open(t, kind);
    await add({ status: 'queued', due_at: now - 3 * minute });
    const [need] = (await read(false)).needs;
    t.like(need, { cause: 'no_server', severity: 'act', since: now - 3 * minute });
    t.is(need!.figure, 'mail has been due for 3 minutes');
  });

  test(`${kind}: organizations: rates out of bounds, domains that lapsed, webhooks that fail`, async (t) => {
    const { db, orgId, read } = await open(t, kind);
    const none = Object.fromEntries(Array.from({ length: 14 }, (_, at) => [`took_${at}`, 0]));
    const counts = { deferred: 0, expired: 0, opened: 0, clicked: 0, ...none };
    const hour = now - (now % hourMs);
    await db('statistics').insert([
      { org_id: orgId, hour, ...counts, sent: 1000, delivered: 800, bounced: 200, complained: 0 },
      {
        org_id: orgId,
        hour: hour - hourMs,
        ...counts,
        sent: 1000,
        delivered: 1000,
        bounced: 0,
        complained: 2,
      },
      {
        org_id: orgId,
        hour: hour - 40 * hourMs,
        ...counts,
        sent: 9,
        delivered: 0,
        bounced: 9,
        complained: 0,
      },
    ]);
    const domain = { org_id: orgId, dkim_selector: 's', dkim_public_key: 'p', dkim_private_key: 'k' };
    const domains = [
      { name: 'lapsed.invalid', status: 'verified', failures: 2, failing_since: now - minute },
      { name: 'lost.invalid', status: 'pending', failures: 0, failing_since: now - 2 * minute },
      { name: 'once.invalid', status: 'verified', failures: 1, failing_since: now - minute },
      { name: 'new.invalid', status: 'pending', failures: 0, failing_since: null },
    ];
    await db('domains').insert(domains.map((one) => ({ id: uuid(), created_at: now, ...domain, ...one })));
    const webhook = { org_id: orgId, types: '[]', secret: 's', after_position: 0, created_at: now };
    const webhooks = [
      { url: 'https://well.invalid/', status: 'active' },
      { url: 'https://new.invalid/', status: 'active', failing_since: now - minute, reason: '500' },
      { url: 'https://long.invalid/', status: 'active', failing_since: now - 2 * hourMs, reason: '500' },
      { url: 'https://gone.invalid/', status: 'disabled', reason: 'it answered 410' },
      { url: 'https://off.invalid/', status: 'disabled', reason: 'disabled by its owner' },
    ];
    for (const one of webhooks)
      await db('webhooks').insert({ id: uuid(), updated_at: now, ...webhook, ...one });
    const { named, needs } = await read();
    t.deepEqual(named, [
      'bounce_rate Acme act',
      'domain_unverified lost.invalid act',
      'domain_unverified lapsed.invalid act',
      'webhook_failing https://gone.invalid/ act',
      'webhook_failing https://long.invalid/ act',
      'complaint_rate Acme watch',
      'webhook_failing https://new.invalid/ watch',
    ]);
    t.is(needs[0]!.figure, '10%: 200 of 2000 sent in 24 hours');
    t.is(needs[1]!.command, 'postern domain verify lost.invalid --org Acme');
  });
}

test('this machine: disk, certificate, and a backup that is too old', async (t) => {
  const fixture = join(import.meta.dirname, '../fixtures/tls/expired.pem');
  const { read, dataDir } = await open(t, 'sqlite', {
    POSTERN_MIN_FREE_SPACE: '9000GB',
    POSTERN_TLS_CERT: fixture,
    POSTERN_SUBMISSION_PORT: '5587',
    POSTERN_BACKUPS: 'off',
  });
  const before = await read();
  t.deepEqual(before.named, ['disk this server act', 'certificate this server act']);
  t.regex(before.needs[1]!.figure, /expired\.pem expired on 2021-01-01/);
  noteBackup(dataDir, { at: now - 6 * 24 * hourMs, file: '/backups/postern.db' });
  t.is((await read()).needs.length, 2);
  noteBackup(dataDir, { at: now - 8 * 24 * hourMs, file: '/backups/postern.db' });
  const backup = (await read()).needs.at(-1)!;
  t.is(backup.cause, 'backup');
  t.is(backup.figure, 'the last one is 8 days old');
  t.is(backup.command, 'postern backup /backups/postern.db --force');
});

test('this machine: nightly backups that have not been made for two nights', async (t) => {
  const { read, dataDir } = await open(t, 'sqlite', {});
  noteBackup(dataDir, { at: now - 47 * hourMs, file: '/backups/postern.db' });
  t.deepEqual((await read()).named, []);
  noteBackup(dataDir, { at: now - 3 * 24 * hourMs, file: '/backups/postern.db' });
  const [backup] = (await read()).needs;
  t.like(backup, { cause: 'backup', figure: 'the last one is 3 days old', command: 'postern doctor' });
  t.regex(backup!.advice, /^No nightly backup to \S+\/backups succeeds\. The log says why\.$/);
});

test('a database that another program has locked, and a clock that has leapt forward', async (t) => {
  const { db, settings } = await openQueue(t, 'sqlite');
  const config = loadConfig({ ...settings, POSTERN_HOSTNAME: 'postern.invalid' });
  const causesOf = async (at = now) =>
    (await readStatus({ db, config, now: at, served: true, triesLock: true })).needs.map(
      ({ cause, severity }) => `${cause} ${severity}`,
    );
  t.deepEqual(await causesOf(), []);
  noteLeapIn(config.dataDir, { at: now - minute, byMs: 3 * 60 * minute });
  t.deepEqual(await causesOf(), ['clock watch']);
  t.deepEqual(await causesOf(now - 2 * minute), [], 'it was set back since');
  t.deepEqual(await causesOf(now + 2 * 24 * 60 * minute), []);
  const other = new sqlite3.Database(join(config.dataDir, 'postern.sqlite'));
  await new Promise((resolve) => other.exec('begin immediate', resolve));
  t.deepEqual(await causesOf(), ['locked act', 'clock watch']);
  const finding = await checkDatabase(async () => db);
  t.is(finding.verdict, 'failure');
  t.regex(finding.found, /another program has locked the database/);
  await new Promise((resolve) => other.exec('rollback', resolve));
  t.deepEqual(await causesOf(), ['clock watch']);
  await new Promise((resolve) => other.close(resolve));
});
