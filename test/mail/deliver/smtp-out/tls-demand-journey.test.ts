import test from 'ava';
import { setDomainTls } from '#accounts/rows/domains-table.ts';
import { startWorld } from '#lab/scenes/world.ts';

for (const floor of ['encrypted', 'verified'] as const) {
  test(`mail of a domain that demands TLS (${floor}) never goes in clear`, async (t) => {
    const world = await startWorld(t, { exchangers: [{ tls: false }] });
    const domain = await world.db('domains').first();
    await setDomainTls(world.db, domain.id, floor);
    const { body } = await world.send({ to: 'ann@there.invalid' });
    for (const attempts of [1, 2]) {
      const email = await world.when(body.emailId, ({ recipients: [recipient], status }) => {
        return recipient.attempts === attempts && status !== 'sending';
      });
      t.is(email.status, 'deferred');
      t.is(email.events.at(-1).data.category, 'tls');
      // To the second attempt, and not to the third.
      await world.clock.advance('31s');
    }
    t.is(world.mx[0]!.messages.length, 0);
    t.false(
      world.mx[0]!.sessions.some(({ commands }) => commands.some((line) => /^(MAIL|DATA)/i.test(line))),
    );
  });
}

test('mail that demands nothing goes in clear where the host has no TLS', async (t) => {
  const world = await startWorld(t, { exchangers: [{ tls: false }] });
  const { body } = await world.send({ to: 'ann@there.invalid' });
  const email = await world.when(body.emailId, ({ status }) => status === 'delivered');
  t.is(email.recipients[0].tls, null);
});
