/**
 * Mail has its return path under the sender's domain while its record is there, and bounces that arrive for it are taken, also
 * those of mail that was sent before the record was gone.
 */
import test from 'ava';
import { journeyKinds } from '#lab/database/databases.ts';
import { goldenMail, type ReturnsWorld, startReturns, typesOf } from '#lab/scenes/returns.ts';
import { until } from '#lab/until.ts';

const own = 'bounces.sender.invalid';

const verify = async (world: ReturnsWorld) =>
  (await world.call('POST', '/api/public/domains/sender.invalid/verify')).body;

/** The domain of the envelope sender of the next mail; what was verified takes effect within a second. */
async function sendUntilFrom(world: ReturnsWorld, domain: string) {
  let n = 0;
  return until(
    async () => {
      await world.clock.jump(1_000);
      const to = `ann${++n}@there.invalid`;
      const { emailId } = (await world.send({ to, subject: `${domain} ${n}` })).body;
      await world.when(emailId, ({ status }) => status === 'delivered');
      const { from } = world.mx[0]!.messages.at(-1)!;
      return from.endsWith(`@${domain}`) && { emailId, path: from, to };
    },
    { what: `mail from ${domain}` },
  );
}

for (const kind of journeyKinds) {
  test(`${kind}: the record appears, mail uses it, it goes away`, async (t) => {
    const world = await startReturns(t, { database: kind });
    const { path: before } = await sendUntilFrom(world, 'postern.invalid');
    const atOwn = before.replace('postern.invalid', own);
    await t.throwsAsync(world.comesBack(atOwn, goldenMail('postfix-unknown-user', before)), {
      message: /550 5\.7\.1 Relaying denied/,
    });

    world.dns.set({ [own]: { CNAME: ['postern.invalid'] } });
    const { domain, records } = await verify(world);
    t.is(domain.returnPath, own);
    t.like(records[1], {
      purpose: 'return_path',
      type: 'CNAME',
      name: own,
      value: 'postern.invalid',
      ok: true,
    });
    const sent = await sendUntilFrom(world, own);

    world.dns.set({ [own]: null });
    t.is((await verify(world)).domain.returnPath, null);
    await sendUntilFrom(world, 'postern.invalid');
    await world.comesBack(sent.path.toUpperCase(), goldenMail('postfix-unknown-user', sent.path, sent.to));
    t.true(typesOf(await world.get(sent.emailId)).includes('email.bounced'));
    await world.comesBack(`postmaster@${own}`, goldenMail('letter-reply'), 'ann@there.invalid');
    await t.throwsAsync(world.comesBack(`ann@${own}`, 'Hello'), { message: /550 5\.1\.1/ });
  });
}

test('the watcher sees the record go, and no answer of DNS changes nothing', async (t) => {
  const world = await startReturns(t, { zone: { [own]: { CNAME: ['postern.invalid'] } } });
  const nextChecked = async () => {
    const row = async () => world.db('domains').first('check_at', 'return_path');
    const { check_at } = await row();
    await world.clock.jump(Math.max(Number(check_at) - world.clock.now(), 0));
    const isChecked = async () => {
      const now = await row();
      return now.check_at !== check_at && now;
    };
    await world.clock.passUntil(isChecked, { step: '10s' });
    // The claim moved the time of the next check too, until the result is stored.
    return until(async () => Number((await row()).check_at) - world.clock.now() > 601_000 && row());
  };
  t.is((await nextChecked()).return_path, 'used');
  world.dns.set({ [own]: 'SERVFAIL' });
  t.is((await nextChecked()).return_path, 'used');
  world.dns.set({ [own]: { MX: ['10 elsewhere.invalid'] } });
  t.is((await nextChecked()).return_path, 'former');
});

test('a pending domain has no return path of its own', async (t) => {
  const world = await startReturns(t, { zone: { 'bounces.new.invalid': { CNAME: ['postern.invalid'] } } });
  await world.call('POST', '/api/public/domains', { body: '{"name":"new.invalid"}' });
  const { body } = await world.call('POST', '/api/public/domains/new.invalid/verify');
  t.like(body.domain, { status: 'pending', returnPath: null });
  await t.throwsAsync(world.comesBack('postmaster@bounces.new.invalid', 'Hello'), { message: /550 5\.7\.1/ });
});
