/** A key that is restricted to a domain has no other sender, neither in From nor in Sender. */
import test from 'ava';
import { loggedIn, startSubmission, submit, withKey } from '#lab/scenes/submission.ts';

test('a key of one domain names no sender of another, by the API or in a whole message', async (t) => {
  const world = await startSubmission(t);
  const whole = { world, orgId: world.orgId, key: world.key };
  const restricted = await withKey(whole, ['email:send', 'domain_scope:sender.invalid']);
  const init = { headers: { authorization: `Bearer ${restricted.key}` } };
  const mail = { from: 'app@sender.invalid', to: 'ann@there.invalid', text: 'Hello' };
  const send = async (subject: string, headers: object, by: object = init) => {
    const body = JSON.stringify({ ...mail, subject, headers });
    return (await world.call('POST', '/api/public/email/send', { ...by, body })).body.error;
  };
  t.is(await send('1', { sender: 'Boss <boss@other.invalid>' }), 'DOMAIN_NOT_ALLOWED');
  t.is(await send('2', { Sender: 'Boss <boss@Sender.invalid>' }), undefined);
  t.is(await send('3', { Sender: 'boss@other.invalid' }, {}), undefined, 'a key without a restriction');

  const talk = await loggedIn(restricted);
  const lines = (sender: string) => [
    'From: app@sender.invalid',
    `Sender: ${sender}`,
    'Subject: s',
    '',
    'Hello',
  ];
  const refused = '550 5.7.1 DOMAIN_NOT_ALLOWED';
  await submit(talk, ['ann@there.invalid'], lines('Boss <boss@other.invalid>'), refused);
  await submit(talk, ['ann@there.invalid'], lines('boss@other.invalid, app@sender.invalid'), refused);
  await submit(talk, ['ann@there.invalid'], lines('App <app@sender.invalid>'));
});
