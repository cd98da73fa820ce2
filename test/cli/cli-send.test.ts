/** `postern send`, and finding its email again by whatever an operator has at hand. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { cliOf, createCli, startCli } from '#lab/cli.ts';
import { golden } from '#lab/cli-golden.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { openDatabase } from '#platform/database/engine/open.ts';

/** The organization Acme with the verified domain sender.invalid, and no server. */
async function startVerified(t: ExecutionContext) {
  const scene = await startCli(t);
  await scene.json('domain add sender.invalid');
  const db = await openDatabase({ dataDir: scene.dataDir, databaseUrl: null });
  t.teardown(() => db.destroy());
  await db('domains').update({ status: 'verified', verified_at: Date.now() });
  return { ...scene, db };
}

test('send without a server: checked like the API, queued, and found again by any name', async (t) => {
  const { cli, onTerminal, json, refusal, db, dataDir } = await startVerified(t);
  const from = ['--from', 'App <app@sender.invalid>'];
  t.regex(
    await refusal(1, 'send ann@there.invalid --from app@other.invalid'),
    /organization Acme\); `postern domain add other\.invalid` registers it/,
  );
  t.regex(await refusal(2, 'send ann@there.invalid'), /required option '--from <SENDER>'/);
  t.regex(await refusal(2, 'send ann --from app@sender.invalid'), /"ann" is not an email address/);
  t.regex(
    await refusal(1, 'send a@there.invalid --attach /nowhere', ...from),
    /\/nowhere cannot be read: ENOENT/,
  );
  const run = join(dataDir, 'run.exe');
  await writeFile(run, 'x');
  t.regex(
    await refusal(1, `send a@there.invalid --attach ${run}`, ...from),
    /attachments\.0\.filename: must be/,
  );

  const html = join(dataDir, 'mail.html');
  await writeFile(html, '<p>Hello <b>Ann</b></p>');
  const sent = await cli(
    `send Ann@there.invalid bob@there.invalid --json --attach ${html}`,
    ...from,
    '--subject',
    'First one',
    '--html',
    `@${html}`,
  );
  t.is(sent.code, 0);
  t.is(sent.stderr.trim().split('\n').length, 1);
  t.regex(sent.stderr, /no server is running, .*; the email is queued/);
  const first = JSON.parse(sent.stdout.toString());
  t.deepEqual(first.accepted, ['Ann@there.invalid', 'bob@there.invalid']);
  const second = JSON.parse((await cli('send ann@there.invalid --json', ...from)).stdout.toString());
  t.not(second.emailId, first.emailId, 'a second test is no repetition');
  const source = (await cli('email source', first.emailId)).stdout.toString();
  t.regex(source, /^Subject: First one\r$/m);
  t.regex(source, /filename=mail\.html/);
  t.regex(source, /<p>Hello <b>Ann<\/b><\/p>/);

  const idOf = async (name: string) => (await json('email show', name)).emailId;
  t.is(await idOf(first.emailId.toUpperCase()), first.emailId);
  t.is(await idOf(first.emailId.slice(-12)), first.emailId);
  t.is(await idOf(first.emailId.slice(-6).toUpperCase()), first.emailId);
  t.is(await idOf(`<${first.id}>`), first.emailId);
  t.is(await idOf(first.id), first.emailId);
  t.is(await idOf('BOB@There.invalid'), first.emailId);
  t.is(await idOf('ann@there.invalid'), second.emailId, 'the newest to the address');
  const [{ id: delivery }] = await db('deliveries').where({ email_id: first.emailId });
  t.is(await idOf(delivery), first.emailId);
  await db('emails').where({ id: second.emailId }).update({ message_id: 'their.own@app.example' });
  t.is(await idOf('<their.own@app.example>'), second.emailId);
  t.is(await idOf('their.own@app.example'), second.emailId);
  t.regex(
    await refusal(1, 'email show 123456789abc'),
    /no email with the id "123456789abc"; give an emailId or its end/,
  );
  await db('emails').where({ id: first.emailId }).update({ message_id: 'their.own@app.example' });
  t.regex(
    await refusal(1, 'email why <their.own@app.example>'),
    /fits several ids of emails: .*, .*; give one of them/,
  );

  t.is((await cli(`queue hold ${first.emailId.slice(-12)} --reason look`)).code, 0);
  const queued = async (filter: string) => {
    const { stdout } = await cli(`queue list --json ${filter}`);
    return JSON.parse(stdout.toString()).map(({ recipient }: { recipient: string }) => recipient);
  };
  t.deepEqual(await queued('--status held'), ['Ann@there.invalid', 'bob@there.invalid']);
  t.deepEqual(await queued('--to ann@There.invalid'), ['Ann@there.invalid', 'ann@there.invalid']);
  t.deepEqual(await queued('--to ann@There.invalid --status held'), ['Ann@there.invalid']);
  t.is((await cli('email cancel ann@there.invalid')).code, 0);

  const listed = async (...filter: string[]) => {
    const emails: { emailId: string }[] = await json('email list', ...filter);
    return emails.map(({ emailId }) => (emailId === first.emailId ? 'first' : 'second'));
  };
  t.deepEqual(await listed(), ['second', 'first']);
  t.deepEqual(await listed('--limit', '1'), ['second']);
  t.deepEqual(await listed('--status', 'held'), ['first']);
  t.deepEqual(await listed('--to', 'BOB@there.invalid'), ['first']);
  t.deepEqual(await listed('--to', 'there.invalid', '--from', 'sender.invalid'), ['second', 'first']);
  t.deepEqual(await listed('--from', 'other@sender.invalid'), []);
  t.deepEqual(await listed('--subject', 'first'), ['first']);
  t.deepEqual(await listed('--tag', 'kind=x'), []);
  t.deepEqual(await listed('--until', '1h'), []);
  t.deepEqual(await listed('--since', '1h'), ['second', 'first']);
  await golden(t, { cli, onTerminal }, 'send-and-list');
});

test('--org: the only organization, else POSTERN_ORG, else a question', async (t) => {
  const { dataDir, json, refusal } = await startCli(t);
  await json('suppression add ann@there.invalid');
  await json('org create --name Other');
  t.regex(
    await refusal(2, 'suppression list'),
    /there are 2 organizations; give --org ORG, or choose one of `postern org list` with `postern use ORG`; see `postern suppression list --help`/,
  );

  const other = createCli(t, { POSTERN_DATA_DIR: dataDir, POSTERN_ORG: 'Other' });
  t.deepEqual(await other.json('suppression list'), []);
  t.is((await other.json('suppression list --org Acme')).length, 1);
  const wrong = createCli(t, { POSTERN_DATA_DIR: dataDir, POSTERN_ORG: 'Nobody' });
  t.regex(await wrong.refusal(1, 'key list'), /there is no organization "Nobody"/);
});

test('the end of an id, as a table shows it, names a key', async (t) => {
  const { json } = await startCli(t);
  const { id } = await json('key create --label web --scope email:send');
  t.is((await json('key revoke', id.slice(-8))).id, id);
});

test('send --watch: follows the email to its end, and says by its exit code whether it was delivered', async (t) => {
  const world = await startWorld(t, { settings: { POSTERN_MTA_RETRY: '1s' } });
  const { start, startOnTerminal, json, cli, onTerminal, refusal } = cliOf(t, world);
  /** The server's clock stands still unless it is turned. */
  const watched = async (...args: string[]) => {
    const command = start('send', ...args, '--from', 'app@sender.invalid', '--watch');
    let isEnded = false;
    void command.ended.then(() => (isEnded = true));
    await world.clock.passUntil(() => isEnded, {
      what: () => `the command to end; it printed ${command.stdout()}${command.stderr()}`,
    });
    return command.ended;
  };
  const good = await watched('ann@there.invalid');
  t.is(good.code, 0, good.stderr);
  t.is(good.stderr, '');
  const lines = good.stdout.toString().trim().split('\n');
  t.regex(
    lines.join('\n'),
    /^emailId\t.*\naccepted\tann@there\.invalid\n20.*Z\tqueued\tann@.*\n20.*Z\tdelivered\tann@there\.invalid\t250 /,
  );
  const shownTo = startOnTerminal('send', 'eve@there.invalid', '--from', 'app@sender.invalid', '--watch');
  await world.clock.passUntil(() => shownTo.stdout().includes('delivered'));
  await shownTo.ended;
  const screen = stripVTControlCharacters(shownTo.stdout()).replace(/\u00a0/g, ' ');
  t.regex(
    screen,
    /^emailId {3}\S{36}\naccepted {2}eve@there\.invalid\n(\S+ {2}queued .*\n)\S+ {2}delivered {2}\w{12} eve@there\.invalid mx1\.invalid \[127\.0\.0\.2\]:\n {25}250 /,
  );
  t.regex(shownTo.stderr(), /waiting: 1 \w+ \(Ctrl-C stops watching, not the mail\)/);
  const bad = await watched('unknown@there.invalid', '--json');
  t.is(bad.code, 1);
  t.like(JSON.parse(bad.stdout.toString()), { status: 'bounced', to: ['unknown@there.invalid'] });
  const later = await watched('greylist@there.invalid');
  t.is(later.code, 0);
  t.regex(later.stdout.toString(), /\tdeferred\tgreylist@there\.invalid\t451 .*\n.*\tdelivered\t/);

  const call = await world.call('POST', '/api/public/email/send', {
    headers: { 'x-request-id': 'request-4711' },
    body: JSON.stringify({ to: 'bob@there.invalid', from: 'app@sender.invalid', subject: 'S', text: 'T' }),
  });
  const { emailId } = call.body;
  const log = () => json(`logs --id request-4711`);
  await until(async () => (await log()).length >= 3, { what: 'the lines of the mail log' });
  t.is((await json('email show request-4711')).emailId, emailId);
  const events = async (...args: string[]) =>
    (await json('logs', ...args)).map((line: { event: string }) => line.event);
  t.deepEqual(await events('--id', 'BOB@there.invalid'), ['accepted', 'attempted', 'delivered']);
  t.deepEqual(await events('--email', emailId.slice(-12)), ['accepted', 'attempted', 'delivered']);
  t.deepEqual(await events('--until', '1h'), []);
  const shown = (await onTerminal(`logs --id ${emailId.slice(-12)}`)).stdout.toString();
  t.deepEqual(
    [...shown.matchAll(/^\S+\s+(\w+)/gm)]
      .map(([, event]) => event)
      .filter((event) => !event!.startsWith('2')),
    ['accepted', 'delivered'],
  );
  const onlyTried = (
    await onTerminal(`logs --status attempted --id ${emailId.slice(-12)}`)
  ).stdout.toString();
  t.regex(onlyTried, /attempted/);
  t.regex(await refusal(2, 'logs -f --until 1h'), /give either -f or --until/);
  await world.stop();
  const alone = await cli('send ann@there.invalid --from app@sender.invalid --watch');
  t.is(alone.code, 1, 'nothing can be watched without a server');
  t.regex(alone.stderr, /no server is running/);
});
