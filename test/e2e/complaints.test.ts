/** Complaints: told once, obeyed always, and believed only where they carry our key. */
import test from 'ava';
import { kinds } from '../helpers/databases.ts';
import { goldenMail, startReturns, typesOf } from '../helpers/returns.ts';

for (const database of kinds) {
  test(`${database}: a complaint is told once, suppresses whatever the policy, and outlasts a bounce`, async (t) => {
    const world = await startReturns(t, { database, settings: { POSTERN_SUPPRESS_AFTER: 'off' } });
    const { emailId, path } = await world.delivered();
    const complaint = goldenMail('arf-yahoo', path);
    await world.comesBack('complaints@postern.invalid', complaint, 'fbl@mail.example');
    await world.comesBack('Complaints@postern.invalid', complaint, 'fbl@mail.example');
    await world.comesBack(path, goldenMail('qmail-remote', path));
    const email = await world.get(emailId);
    t.is(email.status, 'complained');
    t.deepEqual(typesOf(email), ['email.queued', 'email.delivered', 'email.complained']);
    t.like(email.events[2].data, { feedbackType: 'abuse', reportedBy: 'Yahoo!-Mail-Feedback/2.0' });
    const again = await world.send({ to: 'ann@there.invalid', subject: 'Again' });
    t.is(again.body.error, 'ALL_RECIPIENTS_SUPPRESSED');
    const [added, ...more] = await world.db('events').where({ type: 'suppression.added' });
    t.deepEqual(more, []);
    t.like(JSON.parse(added.data), { reason: 'complaint', emailId });
    t.is(world.mx[0]!.messages.length, 1, 'nothing but our own mail was sent');
  });
}

test('a tracked mail is found by its links, where the return path was struck out', async (t) => {
  const world = await startReturns(t);
  const tracking = { openTracking: true, clickTracking: true };
  const html = '<p>Your <a href="https://shop.example/order?id=4711&x=1">order</a></p>';
  const { emailId } = (await world.send({ to: 'ann@there.invalid', html, tracking })).body;
  await world.when(emailId, ({ status }) => status === 'delivered');
  const copy = world.mx[0]!.messages[0]!.raw.toString('latin1');
  const report = goldenMail('arf-anonymous').toString('latin1');
  const withCopy = report
    .replace('Content-Type: text/rfc822-headers', 'Content-Type: message/rfc822')
    .replace(/Received: from mail\.postern[\s\S]*?(?=\r\n--=_arf)/, copy);
  await world.comesBack('abuse@postern.invalid', withCopy, 'fbl@mail.example');
  t.is((await world.get(emailId)).status, 'complained');
});
