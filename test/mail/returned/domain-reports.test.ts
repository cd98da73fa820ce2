/** DMARC and TLS reports that come by mail: kept for the domains that somebody here has, and shown. */
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import { goldenMail, startReturns } from '#lab/scenes/returns.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { keepReport, listAllReports, listReports } from '#mail/returned/rows/domain-reports-table.ts';

test('reports are kept by domain, each once, and shown', async (t) => {
  const world = await startReturns(t, {
    settings: { POSTERN_RETURN_PATH_DOMAIN: 'bounces.postern.example' },
  });
  const { json, cli } = cliOf(t, world);
  await json('domain add shop.example --org Tenant');
  await world.comesBack('dmarc@postern.invalid', goldenMail('dmarc-zip'), 'reports@google.example');
  t.deepEqual(await json('domain reports shop.example'), [], 'nobody has shown that it is his');
  const verifiedAt = Date.parse('2026-11-20T00:00:00.000Z');
  const verified = { status: 'verified', verified_at: verifiedAt };
  await world.db('domains').where({ name: 'shop.example' }).update(verified);
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
  await world.db('domains').where({ org_id: other, name: 'mail.shop.example' }).update(verified);
  t.deepEqual(await seenBy(other, 'mail.shop.example'), [], 'a name below it proves nothing of it');
  const later = { ...verified, verified_at: verifiedAt + 1 };
  await world.db('domains').where({ org_id: other, name: 'shop.example' }).update(later);
  t.deepEqual(await seenBy(other, 'shop.example'), [], 'what was before is of the owner before');
  for (const name of ['shop.example', 'mail.shop.example']) await json(`domain remove ${name} --org Other`);

  await json('domain remove shop.example --org Tenant');
  await world.comesBack('dmarc@postern.invalid', goldenMail('dmarc-plain').subarray(0, -1));
  t.is((await json('domain reports shop.example')).length, 2, 'nobody has that domain verified now');
});

test('names that a stranger has made up take a bounded room, and none of that of verified domains', async (t) => {
  const { db } = await startWorld(t);
  const times = { beginsAt: 1, endsAt: 2 };
  const totals = { messages: 1, passed: 1, quarantined: 0, rejected: 0 };
  const about = (domain: string) =>
    keepReport(
      db,
      {
        kind: 'dmarc',
        reporter: 'other',
        reportId: '1',
        policy: null,
        sources: [],
        domain,
        totals,
        ...times,
      },
      [],
      4,
    );
  t.is(await about('sender.invalid'), 'kept');
  const inRoom = await db('domain_reports').first();
  for (let from = 0; from < 1000; from += 100) {
    const rows = Array.from({ length: 100 }, (_, n) => {
      const id = `00000000-0000-7000-8000-${String(from + n).padStart(12, '0')}`;
      return { ...inRoom, id, domain: '*.sender.invalid', report_id: `x${from + n}.sender.invalid/1` };
    });
    await db('domain_reports').insert(rows);
  }
  t.is(await about('new.deep.sender.invalid'), 'kept');
  t.is(await about('other.deep.sender.invalid'), 'kept', 'the same id of a report, about another name');
  t.is(await about('other.deep.sender.invalid'), 'known');
  t.is(await about('sender2.invalid'), 'foreign');
  const kept: string[] = await db('domain_reports').pluck('report_id');
  t.is(kept.length, 1000 + 1);
  t.false(kept.includes('x1.sender.invalid/1'), 'the oldest have made room');
  const shown = async (domain: string) =>
    (await listAllReports(db, domain, 10)).map(({ report }) => report.domain);
  t.deepEqual(await shown('a.new.deep.sender.invalid'), ['new.deep.sender.invalid', 'sender.invalid']);
  t.deepEqual(await shown('deep.sender.invalid'), ['sender.invalid']);
});
