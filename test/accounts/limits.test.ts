/** Where the database decides how much there may be; what callers are promised of limits is in test/contract/. */
import test from 'ava';
import { registerDomain } from '#accounts/domain-registration.ts';
import { makeUserLink } from '#accounts/people/people.ts';
import { setLimits } from '#accounts/rows/organizations.ts';
import { insertUser } from '#accounts/rows/users.ts';
import { createSeal } from '#accounts/seal.ts';
import { startWorld } from '#lab/scenes/world.ts';
import type { ParseResult } from '#mail/returned/parse-result.ts';
import { keepMail } from '#mail/returned/rows/returned-mails.ts';
import { newId } from '#platform/base/id.ts';
import { fixedSecrets } from '#platform/base/secrets.ts';

test('of webhooks, domains, links and returned mails that are added at once, no more are kept than the limit', async (t) => {
  const world = await startWorld(t);
  const { db, orgId: org_id } = world;
  const post = (path: string, body: object) =>
    world.call('POST', `/api/public/${path}`, { body: JSON.stringify(body) });
  const webhook = (n: number) => post('webhooks', { url: `https://app.invalid/${n}` });
  const answers = await Promise.all(Array.from({ length: 60 }, (_, n) => webhook(n)));
  t.is(answers.filter(({ status }) => status === 200).length, 50);
  t.is((await db('webhooks')).length, 50);
  t.regex((await webhook(60)).body.message, /has 50 webhooks; remove one first/);

  const domain = { dkim_selector: 's', dkim_public_key: '', dkim_private_key: '', created_at: 0 };
  const domains = Array.from({ length: 997 }, (_, n) => ({
    ...domain,
    id: newId(),
    org_id,
    name: `d${n}.invalid`,
    status: 'pending',
  }));
  await db.batchInsert('domains', domains, 90);
  const terms = {
    seal: createSeal(fixedSecrets('a secret of this test')),
    now: 0,
    requestedBy: 'owner' as const,
  };
  const names = ['a.invalid', 'b.invalid', 'c.invalid', 'd.invalid', 'e.invalid', 'e.invalid'];
  const register = (name: string) => registerDomain(db, { orgId: org_id, name }, terms);
  const added = await Promise.allSettled(names.map(register));
  t.is(added.filter(({ status }) => status === 'rejected').length, 4);
  t.is((await db('domains').where({ org_id })).length, 1000);

  const person = { email: 'ann@postern.invalid', name: 'Ann', isOperator: false };
  const userId = (await insertUser(db, person, 0))!;
  const links = Array.from({ length: 8 }, () => makeUserLink(db, { id: userId }, 'reset', 0));
  await Promise.all(links);
  t.is((await db('one_time_tokens').where({ user_id: userId })).length, 1, 'a new link ends those before');

  await world.send({ to: 'ann@there.invalid' });
  const [{ id: deliveryId }] = await db('deliveries').select('id');
  const mail = {
    sender: '',
    recipient: 'b@x.invalid',
    peer: '127.0.0.1',
    at: 0,
    size: 1,
    raw: Buffer.from('x'),
  };
  const letter: ParseResult = { kind: 'letter' };
  const kept = Array.from({ length: 8 }, () => keepMail(db, mail, deliveryId, letter));
  t.is((await Promise.all(kept)).filter((one) => one).length, 3);
  t.is((await db('inbound_mails').where({ delivery_id: deliveryId })).length, 3);
});

test('the requests and emails of a day are counted over a restart', async (t) => {
  const world = await startWorld(t);
  const { db, orgId, call } = world;
  await setLimits(db, orgId, { requestsPerSecond: 100, requestsPerDay: 3 });
  for (let n = 0; n < 3; n++) t.is((await call('GET', '/api/public/keys')).status, 200);
  await world.restart();
  t.is((await call('GET', '/api/public/keys')).status, 429);
});
