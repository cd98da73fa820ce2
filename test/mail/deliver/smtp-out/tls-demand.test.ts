/** The protection that organizations and domains demand: set on the command line, taken into each send. */
import test from 'ava';
import { demandedTls, tlsFloors } from '#accounts/domains.ts';
import { cliOf } from '#lab/cli.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { claimBacklogs } from '#mail/queue/rows/lease-statements.ts';
import { findEmail } from '#mail/record/rows/emails.ts';

test('the stricter of both demands holds', (t) => {
  for (const [one, floor] of tlsFloors.entries()) {
    for (const [other, laxer] of tlsFloors.entries()) {
      const stricter = one > other ? floor : laxer;
      t.is(demandedTls({ tls: floor, organizationTls: laxer }), stricter);
    }
  }
});

test('what is demanded on the command line holds for the next sends, soon', async (t) => {
  const world = await startWorld(t);
  const { json, refusal } = cliOf(t, world);
  const demandOfNextSend = async () => {
    const { body } = await world.send({ to: 'tempfail@there.invalid', subject: `${Math.random()}` });
    return (await findEmail(world.db, body.emailId, world.orgId))!.tls;
  };
  t.is(await demandOfNextSend(), 'opportunistic');

  const ofTenant = 'sender.invalid --org Tenant';
  const demands = { name: 'sender.invalid', tls: 'encrypted', effectiveTls: 'encrypted' };
  t.deepEqual(await json('domain tls sender.invalid encrypted --org Tenant'), demands);
  await until(async () => (await demandOfNextSend()) === 'encrypted');

  t.is((await json('org tls Tenant verified')).tls, 'verified');
  t.is((await json('org show Tenant')).tls, 'verified');
  t.like(await json(`domain show ${ofTenant}`), { tls: 'encrypted', effectiveTls: 'verified' });
  t.like(await json('domain list --org Tenant'), [{ tls: 'encrypted', effectiveTls: 'verified' }]);
  await until(async () => (await demandOfNextSend()) === 'verified');

  await json('org tls Tenant opportunistic');
  await json('domain tls sender.invalid opportunistic --org Tenant');
  await until(async () => (await demandOfNextSend()) === 'opportunistic');
  t.regex(await refusal(2, 'org tls Tenant always'), /"always" is not a TLS level; give one of /);
});

test('a delivery carries the demand of its send', async (t) => {
  const world = await startWorld(t);
  await world.db('domains').update({ tls: 'encrypted' });
  const { body } = await world.send({ to: 'tempfail@there.invalid' });
  await world.db('domains').update({ tls: 'opportunistic' });
  await world.when(body.emailId, ({ status }) => status === 'deferred');
  const later = world.clock.now() + 3_600_000;
  const { id: orgId } = await world.db('organizations').first();
  const lane = { domain: 'there.invalid', orgId, limit: 1 };
  const [taken] = await claimBacklogs(world.db, [lane], { node: 'test', now: later, leaseMs: 1 });
  t.is(taken!.emailId, body.emailId);
  t.is(taken!.tls, 'encrypted');
});
