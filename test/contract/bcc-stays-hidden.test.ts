/** docs/api.md section 2.1, docs/design.md section 2: `cc` and `bcc`, and who learns of whom. */
import test from 'ava';
import fc from 'fast-check';
import { runs } from '#lab/runs.ts';
import { until } from '#lab/until.ts';
import { isError, isInvalid, isReplay, isSent, mailTo } from './answer.ts';
import { openTenant, people, sharedWorld, someone, type Tenant } from './client.ts';

let tenant: Tenant;
const world = sharedWorld(async (made) => {
  tenant = await openTenant(made);
});

const together = 'must be at most 10 recipients in to, cc and bcc together';
const lists = (to: number, cc: number, bcc: number) => ({ to: people(to), cc: people(cc), bcc: people(bcc) });
test('too many together is one issue that says so, beside the others', async (t) => {
  const answer = await tenant.send({ ...lists(8, 3, 8), subject: '' });
  isInvalid(t, answer, ['subject', 'cc']);
  t.is(answer.body.issues[1].message, `cc: ${together}`);
});

test('an address in several lists counts once, in the first of to, cc, bcc', async (t) => {
  const own = await openTenant(world(), { quota: 5 });
  const [ann, bob, carl] = [someone(), someone(), someone()];
  const answer = await own.send({
    to: ann,
    cc: [bob, ann.toUpperCase(), bob],
    bcc: [carl, bob.toUpperCase(), ann],
  });
  isSent(t, answer, [ann, bob, carl]);
  t.is((await own.books()).quota, 2);
  const { body } = await own.get(answer.body.emailId);
  t.deepEqual([body.to, body.cc, body.bcc], [[ann], [bob], [carl]]);
  t.deepEqual(
    body.recipients.map(({ address, kind }: { address: string; kind: string }) => [address, kind]),
    [
      [ann, 'to'],
      [bob, 'cc'],
      [carl, 'bcc'],
    ],
  );
  const found = (await own.call('GET', '/api/public/emails')).body.emails[0];
  t.deepEqual([found.to, found.cc, found.bcc, found.recipients[2].kind], [[ann], [bob], [carl], 'bcc']);
  for (const address of [ann, bob, carl]) {
    const mail = await mailTo(world(), address);
    t.deepEqual([mail.header('To'), mail.header('Cc'), mail.header('Bcc')], [[ann], [bob], []]);
  }
});

test('the lists of the answer and the credits are in the order to, cc, bcc', async (t) => {
  const own = await openTenant(world(), { quota: 3 });
  const { to, cc, bcc } = lists(2, 2, 2);
  await own.suppress(to[1]!, bcc[0]!);
  const { body } = await own.send({ bcc, cc, to });
  t.deepEqual(body.accepted, [to[0], ...cc]);
  t.deepEqual(body.suppressed, [to[1], bcc[0]]);
  t.deepEqual(body.insufficientCredit, [bcc[1]]);
});

test('a display name is refused with the plain address to use', async (t) => {
  for (const field of ['to', 'cc', 'bcc', 'replyTo']) {
    const answer = await tenant.send({ [field]: 'Ann <ann@example.org>' });
    isInvalid(t, answer, [field]);
    const [{ message, expected }] = answer.body.issues;
    t.is(message, `${field}: must be a plain email address, without a display name: ann@example.org`);
    t.is(expected, 'a plain email address');
  }
});

test('every recipient in to suppressed is 422, whoever else there is', async (t) => {
  const own = await openTenant(world(), { quota: 3 });
  const [gone, left, carl] = people(3);
  await own.suppress(gone!, left!);
  isError(t, await own.send({ to: [gone, left], cc: carl, bcc: someone() }), '422 ALL_RECIPIENTS_SUPPRESSED');
  t.deepEqual(await own.books(), { emails: 0, quota: 3, wallet: 0, ledger: 3 });
  t.deepEqual((await own.send({ to: carl, cc: gone, bcc: left })).body.suppressed, [gone, left]);
});

test('cc and bcc are part of what a key and the duplicate window compare', async (t) => {
  const mail = { to: someone(), subject: 'Once', cc: someone(), bcc: someone() };
  const first = await tenant.send(mail);
  isReplay(t, await tenant.send({ ...mail, cc: [mail.cc], bcc: [mail.bcc] }), first);
  isSent(t, await tenant.send({ ...mail, bcc: someone() }));
  isSent(t, await tenant.send({ ...mail, cc: undefined }));

  const keyed = { ...mail, idempotencyKey: 'cc' };
  const kept = await tenant.send(keyed);
  isReplay(t, await tenant.send({ ...keyed, cc: [mail.cc] }), kept);
  isError(t, await tenant.send({ ...keyed, bcc: [mail.bcc, someone()] }), '400 BAD_REQUEST');
  isError(t, await tenant.send({ ...keyed, cc: mail.bcc, bcc: mail.cc }), '400 BAD_REQUEST');
});

test('no byte that a recipient receives names a bcc recipient, its envelope included', async (t) => {
  const kinds = fc.array(fc.constantFrom('to', 'cc', 'bcc', 'bcc'), { maxLength: 6 });
  const content = fc.record({
    html: fc.option(fc.constant('<p>Hi <a href="https://there.invalid/x">x</a></p>'), { nil: undefined }),
    tracking: fc.record({ openTracking: fc.boolean(), clickTracking: fc.boolean() }),
    headers: fc.constantFrom({}, { 'X-App': 'web', 'List-Unsubscribe': '<https://sender.invalid/u>' }),
  });
  const property = fc.asyncProperty(kinds, content, async (others, fields) => {
    const recipients = ['to', ...others].map((kind) => ({ kind, address: someone() }));
    const of = (wanted: string) =>
      recipients.flatMap(({ kind, address }) => (kind === wanted ? [address] : []));
    isSent(t, await tenant.send({ ...fields, to: of('to'), cc: of('cc'), bcc: of('bcc') }));
    for (const { address } of recipients) {
      const what = `a mail to ${address}`;
      const message = await until(() => world().mx[0]!.messages.find(({ to }) => to.includes(address)), {
        what,
      });
      t.deepEqual(message.to, [address]);
      const bytes = `${message.from}\n${message.raw.toString('latin1')}`;
      // The local part alone: an address may be encoded or split.
      const names = (hidden: string) => new RegExp(`\\b${hidden.split('@')[0]}\\b`).test(bytes);
      for (const hidden of of('bcc')) t.false(names(hidden), `${hidden} in the mail to ${address}`);
      for (const shown of [...of('to'), ...of('cc')]) t.true(names(shown));
    }
  });
  await fc.assert(property, { numRuns: runs(100) });
});
