/** docs/api.md, section 4: the two endpoints and the rules of the send call. */
import test from 'ava';
import { hasHeaders, isError, isReplay, isSent } from './answer.ts';
import {
  breakSubject,
  emailPath,
  nobodysId,
  openTenant,
  people,
  sharedWorld,
  someone,
  type Tenant,
  turningWorld,
} from './client.ts';

let tenant: Tenant;
const world = sharedWorld(async (made) => {
  tenant = await openTenant(made, { quota: 100_000 });
});
const turned = turningWorld();

// 4.1 POST /api/public/email/send

/** What differs from the first call, and whether that makes it another send. */
const calls: [what: string, fields: object, anew: boolean][] = [
  ['another from', { from: 'Other <other@sender.invalid>' }, false],
  ['another subject', { subject: 'Other' }, true],
  ['a recipient more', { to: ['ann@there.invalid', 'bob@there.invalid'] }, true],
  ['another recipient', { to: 'bob@there.invalid' }, true],
];

for (const [what, fields, anew] of calls) {
  test(`4.1.6 when idempotencyKey is omitted, API key ID, recipients and subject identify duplicates: ${what}${anew ? ' is none' : ''}`, async (t) => {
    const own = await openTenant(world(), { quota: 50 });
    const first = await own.send({ to: 'ann@there.invalid' });
    const second = await own.send({ to: 'ann@there.invalid', ...fields });
    if (anew) isSent(t, second);
    else isReplay(t, second, first);
    t.is((await own.books()).emails, anew ? 2 : 1);
  });
}

test('4.1.6 another API key of the organization makes another send', async (t) => {
  const own = await openTenant(world());
  const to = someone();
  const [first, second] = [await own.send({ to }), await (await own.addKey('email:send')).send({ to })];
  isSent(t, second);
  t.not(second.body.emailId, first.body.emailId);
});

test.serial('4.1.6 within a 2-second time window', async (t) => {
  const sender = await openTenant(turned());
  const to = someone();
  const first = await sender.send({ to });
  for (const ms of [1000, 999]) {
    await turned().clock.advance(ms);
    isReplay(t, await sender.send({ to }), first);
  }
  await turned().clock.advance(1);
  const later = await sender.send({ to });
  isSent(t, later);
  t.not(later.body.emailId, first.body.emailId);
});

test('4.1.6 a duplicate call within 2 seconds is ignored and no additional credits are deducted', async (t) => {
  const own = await openTenant(world(), { quota: 5 });
  const to = people(2);
  const answers = await Promise.all(Array.from({ length: 5 }, () => own.send({ to })));
  t.is(new Set(answers.map(({ body }) => body.emailId)).size, 1);
  t.deepEqual(await own.books(), { emails: 1, quota: 3, wallet: 0, ledger: 3 });
  t.is((await tenant.get(answers[0]!.body.emailId)).status, 404, 'and another organization sees none of it');
});

test('4.1.8 credits of a failed send (500 SEND_FAILED) are refunded automatically', async (t) => {
  const mend = await breakSubject(world(), 'refund');
  const own = await openTenant(world(), { quota: 2, wallet: 3 });
  const to = people(4);
  isError(t, await own.send({ to, subject: 'refund' }), '500 SEND_FAILED');
  t.deepEqual(await own.books(), { emails: 0, quota: 2, wallet: 3, ledger: 5 });
  await mend();
  const sent = await own.send({ to, subject: 'refund' });
  isSent(t, sent, to);
  t.is(sent.headers.get('idempotent-replayed'), null, 'what failed is no send to be a duplicate of');
  t.deepEqual(await own.books(), { emails: 1, quota: 0, wallet: 1, ledger: 1 });
});

// 4.2 GET /api/public/email/:id

test('4.2 id: a value that is not a UUID gives 400 BAD_REQUEST', async (t) => {
  const dashless = nobodysId.replaceAll('-', '');
  for (const id of [
    '1',
    'abc',
    `${nobodysId}0`,
    nobodysId.slice(1),
    dashless,
    `%7B${nobodysId}%7D`,
    '%20',
    '%zz',
    "'%20or%201=1--",
  ])
    isError(t, await tenant.get(id), '400 BAD_REQUEST', id);
  const { id } = (await tenant.send()).body;
  isError(t, await tenant.get(encodeURIComponent(id)), '400 BAD_REQUEST', 'the id of the provider is none');
});

test('4.2 no request body: none is needed, nor a Content-Type, and one that is there changes nothing', async (t) => {
  const { body } = await tenant.send();
  const answer = await tenant.get(body.emailId);
  t.is(answer.status, 200);
  hasHeaders(t, answer);
  t.is((await tenant.call('GET', emailPath(body.emailId), { body: '{' })).status, 200);
});

test('4.2 id: any form of a UUID is one', async (t) => {
  const { emailId } = (await tenant.send()).body;
  t.is((await tenant.get(emailId.toUpperCase())).body.emailId, emailId);
  for (const id of ['11111111-1111-1111-1111-111111111111', '00000000-0000-0000-0000-000000000000'])
    isError(t, await tenant.get(id), '404 NOT_FOUND', id);
});

test('4.2 an id that belongs to another organization gives 404 NOT_FOUND', async (t) => {
  const other = await openTenant(world());
  const { body } = await tenant.send();
  const [theirs, nobodys] = [await other.get(body.emailId), await other.get(nobodysId)];
  isError(t, theirs, '404 NOT_FOUND');
  t.is(
    theirs.body.message.replace(body.emailId, ''),
    nobodys.body.message.replace(nobodysId, ''),
    'it does not tell which',
  );
});
