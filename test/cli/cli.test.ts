/**
 * The journeys of the command line, a test a group: JSON shapes, exit codes, what is refused and how that is said.
 * Each test has a data directory of its own; its commands run one after the other, as an operator types them.
 */
import { appendFile, chmod, cp, mkdir, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { v7 as uuid } from 'uuid';
import { commandTable } from '#cli/commands.ts';
import { cliOf, createCli, createProcessCli, makeInstallation, root, run, startCli } from '#lab/cli.ts';
import { startDns } from '#lab/dns/dns.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { openDatabase } from '#platform/database/engine/open.ts';
import { mailLogFile } from '#platform/values/mail-log.ts';

test('domain: verified when its DKIM record is found, and no DNS trouble takes that away', async (t) => {
  const dns = await startDns({ 'example.invalid': { TXT: ['v=spf1 -all'] } });
  t.teardown(() => dns.close());
  const { json, cli, refusal } = await startCli(t, { POSTERN_DNS_SERVERS: dns.address });
  const added = await json('domain add Example.INVALID. --org Acme');
  t.deepEqual(Object.keys(added), ['id', 'name', 'status', 'receives', 'records']);
  t.like(added, { name: 'example.invalid', status: 'pending' });
  const [dkim] = added.records;
  t.deepEqual(Object.keys(dkim), ['type', 'name', 'value', 'purpose', 'note', 'required']);
  const ofAcme = 'example.invalid --org Acme';
  t.regex(
    await refusal(1, `domain add ${ofAcme}`),
    /example\.invalid is already registered in this organization/,
  );

  const verify = async () => {
    const { code, stdout, stderr } = await cli(`domain verify ${ofAcme} --json`);
    return { code, stderr, ...JSON.parse(stdout.toString()) };
  };
  const early = await verify();
  t.like(early, { code: 1, stderr: '', name: 'example.invalid', status: 'pending' });
  const seen = early.records.map(({ purpose, ok, found }: Record<string, unknown>) => [purpose, ok, found]);
  t.deepEqual(seen, [
    ['dkim', false, []],
    ['return_path', false, []],
    ['dmarc', false, []],
  ]);
  dns.set({ [dkim.name]: { TXT: [dkim.value] } });
  t.like(await verify(), { code: 0, status: 'verified', records: [{ ok: true, found: [dkim.value] }] });
  dns.set({ [dkim.name]: 'SERVFAIL' });
  const doubtful = await verify();
  t.like(doubtful, { code: 0, status: 'verified' });
  t.regex(doubtful.stderr, /example\.invalid stays verified: .*ESERVFAIL/);
  dns.set({ [dkim.name]: null });
  const missing = await verify();
  t.like(missing, { code: 1, status: 'verified', records: [{ ok: false, found: [] }] });
  t.true(missing.stderr.includes(`stays verified, but TXT ${dkim.name} is missing`));

  const tracking = { opens: true, clicks: false, host: null };
  t.deepEqual(await json(`domain tracking ${ofAcme} --opens on`), { name: 'example.invalid', tracking });
  t.like(await json('domain list --org Acme'), [{ status: 'verified', failingSince: null, tracking }]);
  t.deepEqual((await json(`domain show ${ofAcme}`)).records, added.records);
  const zone = (await cli(`domain show ${ofAcme} --zone`)).stdout.toString();
  t.is(zone.match(/^\S+\. 3600 IN (TXT|CNAME) .+$/gm)?.length, added.records.length);
  t.deepEqual(await json(`domain show ${ofAcme} --zone`), { zone });
  const host = 'links.example.invalid';
  t.like(await json(`domain tracking ${ofAcme} --clicks on --host ${host}`), {
    tracking: { opens: true, clicks: true, host },
  });
  const cname = { type: 'CNAME', name: host, value: 'mail.postern.invalid', purpose: 'tracking' };
  t.like((await json(`domain show ${ofAcme}`)).records[3], { ...cname, required: false });
  dns.set({ [dkim.name]: { TXT: [dkim.value] }, [host]: { CNAME: ['Mail.Postern.invalid'] } });
  t.like((await verify()).records[3], { ...cname, ok: true });
  t.is((await json(`domain tracking ${ofAcme} --host none`)).tracking.host, null);
  t.regex(await refusal(2, `domain tracking ${ofAcme} --host nonsense!`), /"nonsense!" is not a domain name/);
  await json(`domain remove ${ofAcme}`);
  t.regex(
    await refusal(1, `domain show ${ofAcme}`),
    /is not registered in Acme; `postern domain list --org Acme`/,
  );
});

const listOfThree =
  '\uFEFFemail,why\r\nann@there.invalid,x\r\n\r\n# old\r\n"Bob@there.invalid"\r\nANN@There.invalid\r\n';

test('suppression: a list is imported without its bad lines, which are named', async (t) => {
  const { json, cli, refusal, dataDir } = await startCli(t);
  const list = join(dataDir, 'list.csv');
  await writeFile(list, listOfThree);
  const added = await json('suppression add Ann@there.invalid --org Acme');
  t.deepEqual(added, { address: 'Ann@there.invalid', added: true });
  t.deepEqual(await json('suppression import --org Acme', list), {
    added: 1,
    before: 1,
    rejected: 0,
    rejectedLines: [],
  });
  await writeFile(list, 'email\nnobody\n');
  const faults = await refusal(1, 'suppression import --org Acme', list);
  t.regex(faults, /no email address in line 2 \("nobody"\); nothing was imported/);
  await appendFile(list, 'bob@there.invalid\r\n');
  const partly = await cli(`suppression import --org Acme ${list} --json`);
  t.is(partly.code, 0);
  t.like(JSON.parse(partly.stdout.toString()), {
    added: 0,
    before: 1,
    rejected: 1,
    rejectedLines: [{ line: 2, text: 'nobody' }],
  });
  t.regex(partly.stderr.toString(), /no email address in line 2 \("nobody"\); the others were imported/);
  t.like(await json('suppression list --org Acme'), [
    { address: 'Ann@there.invalid', reason: 'manual' },
    { address: 'Bob@there.invalid', reason: 'imported' },
  ]);
});

/** Sends to one recipient of each fate, and waits until each has met it. */
async function sendAll(world: World) {
  const names = ['greylist', 'unknown', 'drop-after-dot', 'ann', 'dee'].map(
    (name) => `${name}@there.invalid`,
  );
  const { body } = await world.send({ to: [...names, 'eve@silent.invalid'], tags: { kind: 'welcome' } });
  const isThere = ({ status }: { status: string }) => !['queued', 'sending'].includes(status);
  await world.when(body.emailId, ({ recipients }) => recipients.every(isThere));
  return { names, emailId: body.emailId };
}

test('email: beside a running server, the story, the reason and the bytes', async (t) => {
  // Longer than the commands take, whose clock is the real one.
  const settings = { POSTERN_MTA_RETRY: '1h' };
  const world = await startWorld(t, { settings, zone: { 'silent.invalid': 'SERVFAIL' } });
  const { json, cli, refusal } = cliOf(t, world);
  await json('suppression add dee@there.invalid --org Tenant');
  const { emailId } = await sendAll(world);

  const { recipients: shown, ...rest } = await json('email show', emailId);
  const { success, recipients, ...telemetry } = await world.get(emailId);
  t.deepEqual(rest, telemetry);
  t.deepEqual(
    shown.map(({ attemptLog, ...recipient }: Record<string, unknown>) => recipient),
    recipients,
  );
  const [greylist, unknown, dropped, ann, dee, eve] = shown.map(
    (each: { attemptLog: object[] }) => each.attemptLog,
  );
  t.deepEqual(Object.keys(greylist[0]), [
    ...['number', 'startedAt', 'endedAt', 'outcome', 'category', 'fault', 'origin', 'diagnostic'],
    ...['possibleDuplicate', 'rule', 'response', 'mx', 'tls', 'transcript'],
  ]);
  t.like(greylist[0], {
    number: 1,
    outcome: 'deferred',
    mx: { host: 'mx1.invalid' },
    response: { code: 451 },
  });
  t.like(unknown[0], { outcome: 'bounced', category: 'unknown_user', fault: 'recipient' });
  t.like(dropped[0], { outcome: 'deferred', possibleDuplicate: true, response: null });
  const said = ({ from, text }: { from: string; text: string }) =>
    from === 'client' && /^RCPT TO:<ann@/.test(text);
  t.true(ann[0].transcript.some(said));
  t.deepEqual(dee, []);
  t.like(eve[0], { category: 'dns', mx: null, tls: null });

  const why = (await json('email why', emailId)).recipients;
  t.regex(
    why[0].why,
    /said "451 4\.7\.1 greylisted, try again" .* not final: the failure is on the remote side\. .* next attempt is due 2/,
  );
  t.regex(why[1].why, /said "550 5\.1\.1 no such mailbox" .* final, a hard bounce \(unknown_user\)/);
  t.regex(why[2].why, /Attempt 1 at mx1\.invalid .* may have arrived/);
  t.regex(why[3].why, /^Delivered .*: mx1\.invalid .* said "250 /);
  t.regex(why[4].why, /on the suppression list.*`postern suppression remove dee@there\.invalid --org /);
  t.regex(why[5].why, /^Attempt 1 failed: .* The next attempt is due 2/);
  t.deepEqual(why[1].evidence, unknown[0]);
  const plain = (await cli('email why', emailId)).stdout.toString();
  t.regex(plain, /^recipient\tgreylist@there\.invalid\tdeferred\tmx1\.invalid/);

  const copied = await world.send({
    to: 'ann@there.invalid',
    subject: 'Copied',
    cc: 'carl@there.invalid',
    bcc: 'fred@there.invalid',
  });
  const facts = (await cli('email show', copied.body.emailId)).stdout.toString();
  t.regex(facts, /^cc\tcarl@there\.invalid$/m);
  t.regex(facts, /^bcc\tfred@there\.invalid$/m);
  const readLog = () => json(`logs --email ${copied.body.emailId} --status accepted`);
  await until(async () => (await readLog()).length === 3, { what: 'the lines in the mail log' });
  const log = await readLog();
  t.deepEqual(
    log.map(({ recipient, kind }: Record<string, string>) => [recipient, kind]),
    [
      ['ann@there.invalid', undefined],
      ['carl@there.invalid', 'cc'],
      ['fred@there.invalid', 'bcc'],
    ],
  );
  t.true(log[2].msg.startsWith('accepted for <fred@there.invalid> (bcc) from '));

  const { stdout } = await cli('email source', emailId);
  t.deepEqual(stdout, world.mx[0]!.messages[0]!.raw);
  t.regex(await refusal(1, 'email show', uuid()), /no email with the id/);
  t.regex(await refusal(1, 'email source nonsense'), /no email with the id "nonsense"/);
});

test('queue: what waits; all of it on PostgreSQL, with the other reads', async (t) => {
  const world = await startWorld(t, { database: 'postgres', zone: { 'silent.invalid': 'SERVFAIL' } });
  const { json, cli } = cliOf(t, world);
  const list = join(world.config.dataDir, 'list.csv');
  await writeFile(list, 'dee@there.invalid\ndee@there.invalid\nDee@there.invalid\nzoe@there.invalid\n');
  t.like(await json('suppression import --org Tenant', list), { added: 2, before: 0 });
  const { names, emailId } = await sendAll(world);

  const summary = await json('queue summary');
  const counts = summary.map((each: Record<string, unknown>) => [each.domain, each.queued, each.deferred]);
  t.deepEqual(counts.sort(), [
    ['silent.invalid', 0, 1],
    ['there.invalid', 0, 2],
  ]);
  const waiting = async (filter: string) => {
    const entries: { recipient: string }[] = await json(`queue list${filter}`);
    return entries.map(({ recipient }) => recipient);
  };
  t.deepEqual(await waiting(''), [names[0], names[2], 'eve@silent.invalid']);
  t.deepEqual(await waiting(' --domain THERE.invalid --org Tenant --limit 1'), [names[0]]);
  t.deepEqual(await waiting(' --status bounced'), [names[1]]);

  t.is((await json('email show', emailId)).recipients[1].attemptLog[0].response.code, 550);
  t.deepEqual((await cli('email source', emailId)).stdout, world.mx[0]!.messages[0]!.raw);
  t.like(await json('credits show Tenant'), { quota: { used: 5 }, ledger: [{ change: -5 }, { change: 0 }] });
  const log = await json('logs --domain silent.invalid --org Tenant --email', emailId);
  const events = log.map(({ event }: { event: string }) => event);
  t.deepEqual(events, ['accepted', 'attempted', 'deferred']);
  const [accepted] = log;
  const story = await json('logs --id', emailId);
  for (const id of [accepted.requestId, accepted.messageId, accepted.deliveryId])
    t.deepEqual(await json('logs --id', id), story, id);
  t.true(story.length > log.length, 'the whole email, whichever of its ids');
  const top = await json('top');
  t.is(typeof top.rates.accepted, 'number');
  t.true(top.queue.destinations.some(({ total }: { total: number }) => total > 0));
  t.regex((await cli('top')).stdout.toString(), /^rate\taccepted\t\d+$/m);
});

function logLine(number: number, fields: object = {}): string {
  const line = { time: '2026-11-20T12:00:00.000Z', event: 'accepted', msg: `accepted line ${number}` };
  return `${JSON.stringify({ ...line, emailId: 'e', orgId: 'o', destination: 'there.invalid', ...fields })}\n`;
}

test('logs: the last lines, and what follows through a rotation', async (t) => {
  const dataDir = await temporaryDirectory(t);
  const { json, cli, start } = createCli(t, { POSTERN_DATA_DIR: dataDir });
  const { stdout: followed, exit } = start('logs', '-f', '-n', '2');
  const follows = (text: string) =>
    until(() => followed().includes(text), { what: () => `${text} in ${followed()}` });
  t.deepEqual(await json('logs'), [], 'no log yet');

  const file = mailLogFile(dataDir);
  await mkdir(join(dataDir, 'log'), { recursive: true });
  await writeFile(file, logLine(1) + logLine(2));
  await follows('line 2');
  await appendFile(file, logLine(3).slice(0, 20));
  await appendFile(file, logLine(3).slice(20));
  await rename(file, join(dataDir, 'log', '20261120-1200-01-mail.log'));
  await writeFile(file, logLine(4, { emailId: 'f', destination: 'else.invalid' }));
  await follows('line 4');
  const expected = [
    logLine(1),
    logLine(2),
    logLine(3),
    logLine(4, { emailId: 'f', destination: 'else.invalid' }),
  ];
  t.is((await exit()).stdout.toString(), expected.join(''), 'in a pipe the lines are those of the file');

  const inJson = (await json('logs -n 2')).map(({ msg }: { msg: string }) => msg);
  t.deepEqual(inJson, ['accepted line 3', 'accepted line 4'], 'the rotated file is read too');
  t.is((await cli('logs --domain there.invalid -n 9')).stdout.toString(), expected.slice(0, 3).join(''));
  t.is((await cli('logs --since 2026-11-20 --status accepted')).stdout.toString(), expected.join(''));
  t.deepEqual(await json('logs --status bounced'), []);
});

test('without a command there is help; --json may stand anywhere; every bad setting is named', async (t) => {
  const settings = { POSTERN_DATA_DIR: await temporaryDirectory(t), POSTERN_MTA_PORT: '2525' };
  const { cli } = createCli(t, settings);
  const bare = await cli('');
  t.is(bare.code, 0);
  t.regex(bare.stdout.toString(), /^Usage: postern /);
  const first = (await cli('--json config')).stdout.toString();
  t.is(first, (await cli('config --json')).stdout.toString());
  const port = JSON.parse(first).find(({ name }: { name: string }) => name === 'POSTERN_MTA_PORT');
  t.like(port, { value: 2525, source: 'environment' });
  const wrong = { ...settings, POSTERN_MTA_PORT: 'smtp', POSTERN_HTTP_PORT: 'x' };
  const bad = await createCli(t, wrong).cli('org list');
  t.is(bad.code, 1);
  t.deepEqual(bad.stderr.match(/^postern: POSTERN_(HTTP|MTA)_PORT: .* is not a port/gm)?.length, 2);
  const table = (await commandTable()).map(({ command }) => command);
  t.true(
    table.includes(
      'postern key create [--org ORG] --label L --scope S [--scope S]… [--domain D]… [--strict] [--no-strict] [--test] [--stream NAME]',
    ),
  );
});

test('a Node that is too old, or none, is named in one line', async (t) => {
  const place = await temporaryDirectory(t);
  await cp(join(root, 'scripts'), join(place, 'scripts'), { recursive: true });
  await mkdir(join(place, 'bin'));
  await symlink(join(place, 'scripts/postern'), join(place, 'bin/postern'));
  for (const tool of ['readlink', 'dirname']) await symlink(`/usr/bin/${tool}`, join(place, 'bin', tool));
  const say = (found: string) =>
    `postern needs Node 24 or newer; ${found}. Install it, or run \`npm ci\`, which brings one along.\n`;
  const env = { PATH: join(place, 'bin') };
  t.like(await run(join(place, 'bin/postern'), [], env), { code: 1, stderr: say('none was found') });
  await writeFile(join(place, 'bin/node'), '#!/bin/sh\necho v20.20.2\n');
  await chmod(join(place, 'bin/node'), 0o755);
  t.like(await run(join(place, 'bin/postern'), [], env), { code: 1, stderr: say('this is v20.20.2') });
  t.like(await run(join(place, 'scripts/start'), [], env), { code: 1, stderr: say('this is v20.20.2') });
});

test('a process of its own answers with the same bytes and codes as the function that the other tests call', async (t) => {
  const dataDir = await temporaryDirectory(t);
  await makeInstallation(dataDir);
  const [process, here] = [createProcessCli, createCli].map((create) =>
    create(t, { POSTERN_DATA_DIR: dataDir }),
  );
  for (const [command, code] of [
    ['--help', 0],
    ['org list --json', 0],
    ['org show Nobody', 1],
    ['org', 2],
  ] as const) {
    const answer = await process!.cli(command);
    t.is(answer.code, code, answer.stderr);
    t.deepEqual(await here!.cli(command), answer, command);
  }
});

test('a database that somebody else holds: who to look for, after a while', async (t) => {
  const dataDir = await temporaryDirectory(t);
  await makeInstallation(dataDir);
  const { json, refusal } = createCli(t, { POSTERN_DATA_DIR: dataDir });
  const other = await openDatabase({ dataDir, databaseUrl: null });
  await other.transaction(async () => {
    t.regex(
      await refusal(1, 'org create --name Other'),
      /database is locked; another program has locked the database: `fuser`/,
    );
  });
  await other.destroy();
  await json('org create --name Other');
});
