/** DMARC and TLS reports that come by mail: kept for the domains that somebody here has, and shown. */
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import { goldenMail, startReturns } from '#lab/scenes/returns.ts';
import { listReports } from '#mail/returned/rows/domain-reports-table.ts';

test('reports are kept by domain, each once, and shown', async (t) => {
  const world = await startReturns(t, {
    settings: { POSTERN_RETURN_PATH_DOMAIN: 'bounces.postern.example' },
  });
  const { json, cli } = cliOf(t, world);
  await json('domain add shop.example --org Tenant');
  await world.comesBack('dmarc@postern.invalid', goldenMail('dmarc-zip'), 'reports@google.example');
  t.deepEqual(await json('domain reports shop.example'), [], 'nobody has shown that it is his');
  await world.db('domains').where({ name: 'shop.example' }).update({ status: 'verified' });
  for (const name of ['dmarc-zip', 'dmarc-gzip', 'dmarc-namespace', 'dmarc-bomb']) {
    await world.comesBack('dmarc@postern.invalid', goldenMail(name), 'reports@google.example');
  }
  await world.comesBack('tls-reports@bounces.postern.example', goldenMail('tls-gzip'));
  const reports = await json('domain reports shop.example');
  t.deepEqual(
    reports.map(({ reporter, totals }: { reporter: string; totals: { messages: number } }) => [
      reporter,
      totals.messages,
    ]),
    [
      ['new.example', 7],
      ['google.example', 123],
    ],
  );
  t.like(reports[1], { kind: 'dmarc', policy: 'none', beginsAt: '2026-11-20T00:00:00.000Z' });
  t.like(reports[1].totals, { messages: 123, passed: 120, quarantined: 3, rejected: 0 });
  t.deepEqual((await json('domain reports mail.shop.example')).length, 2);
  t.deepEqual(await json('domain reports other.example'), []);
  const [tls] = await json('domain reports bounces.postern.example');
  t.like(tls, { kind: 'tls', reporter: 'Google Inc.', totals: { sessions: 45, failed: 3 } });
  const shown = (await cli('domain reports shop.example')).stdout.toString();
  t.regex(shown, /^dmarc-failed\t198\.51\.100\.66\tshop\.example\tgoogle\.example\t3\tquarantine$/m);

  // Who has the domain verified sees them; whoever has only registered its name, or one below it, does not.
  const owner = (await world.db('organizations').where({ name: 'Tenant' }).first('id')).id;
  const { id: other } = await json('org create --name Other');
  for (const name of ['shop.example', 'mail.shop.example']) await json(`domain add ${name} --org Other`);
  const seenBy = async (orgId: string, domain: string) =>
    (await listReports(world.db, { orgId, domain }, 10)).map(({ report }) => report.reporter);
  t.deepEqual(await seenBy(owner, 'shop.example'), ['new.example', 'google.example']);
  t.deepEqual(await seenBy(owner, 'mail.shop.example'), ['new.example', 'google.example']);
  for (const name of ['shop.example', 'mail.shop.example']) t.deepEqual(await seenBy(other, name), [], name);
  await world
    .db('domains')
    .where({ org_id: other, name: 'mail.shop.example' })
    .update({ status: 'verified' });
  t.deepEqual(await seenBy(other, 'mail.shop.example'), [], 'a name below it proves nothing of it');
  await json('domain remove mail.shop.example --org Other');

  await json('domain remove shop.example --org Tenant');
  await world.comesBack('dmarc@postern.invalid', goldenMail('dmarc-plain').subarray(0, -1));
  t.is((await json('domain reports shop.example')).length, 2, 'nobody has that domain verified now');
});
