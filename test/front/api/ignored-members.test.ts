/** Unknown members of a send: ignored, but named in the answer and in the mail log; refused for a strict key. */
import { readFileSync } from 'node:fs';
import test from 'ava';
import { makeKey, rotateKey } from '#accounts/create-key.ts';
import { findKey } from '#accounts/rows/keys.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { closestName } from '#platform/base/closest-name.ts';
import { mailLogFile } from '#platform/values/mail-log.ts';

const file = { filename: 'a.txt', content: 'YQ==', fileName: 'b.txt' };
const misspelt = {
  reply_to: 'support@sender.invalid',
  'a\r\nb,ü': 1,
  attachments: [file],
  tracking: { open: true },
  tags: { any: 'name' },
};
const names = 'reply_to, a??b??, attachments.0.fileName, tracking.open';

test('unknown members are named in the answer, in the log with what was meant, and refused for a strict key', async (t) => {
  const world = await startWorld(t);
  const { status, headers, body } = await world.send({ to: 'ann@there.invalid', ...misspelt });
  t.is(status, 200);
  t.is(headers.get('x-postern-ignored'), names);
  const line = await until(
    () =>
      readFileSync(mailLogFile(world.config.dataDir), 'utf8')
        .split('\n')
        .find((one) => one.includes(body.emailId) && one.includes('"event":"accepted"')),
    { what: 'the line in the mail log' },
  );
  t.regex(line, /; ignored: reply_to \(did you mean replyTo\?\), /);
  t.regex(line, /attachments\.0\.fileName \(did you mean filename\?\)/);
  const plain = await world.send({ to: 'bob@there.invalid', tags: { any: 'name' } });
  t.is(plain.headers.get('x-postern-ignored'), null);

  const many = Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`${n}${'x'.repeat(500)}`, 1]));
  const flooded = (await world.send({ to: 'cid@there.invalid', ...many })).headers.get('x-postern-ignored')!;
  t.is(flooded.split(', ').length, 11, 'ten names and an ellipsis');
  t.true(flooded.length < 1000);

  const wanted = { orgId: world.orgId, label: 'strict', scopes: ['email:send'], strict: true };
  const first = await makeKey(world.db, wanted, world.clock.now());
  const record = (await findKey(world.db, first.id, null))!;
  const { key, strict } = await rotateKey(world.db, record, world.clock.now());
  t.true(strict, 'a rotation keeps the option');
  const post = (fields: object) =>
    world.call('POST', '/api/public/email/send', {
      body: JSON.stringify({ from: 'app@sender.invalid', subject: 'Hello', text: 'Hi', ...fields }),
      headers: { authorization: `Bearer ${key}` },
    });
  const refused = await post({ ...misspelt, subject: 7 });
  t.is(refused.status, 400);
  t.is(refused.headers.get('x-postern-ignored'), names);
  const issues: { path: string[]; expected: string }[] = refused.body.issues;
  t.deepEqual(
    issues.map(({ path }) => path.join('.')),
    ['to', 'subject', 'reply_to', 'a\r\nb,ü', 'attachments.0.fileName', 'tracking.open'],
    'all violations at once',
  );
  t.is(issues[2]!.expected, 'replyTo');
  t.is((await post({ to: 'dan@there.invalid', ...many })).body.issues.length, 100);
  t.is((await post({ to: 'eve@there.invalid', tags: { any: 'name' } })).status, 200);
});

test('the closest name is one in another case or with a slip, and no other', (t) => {
  const known = ['to', 'text', 'replyTo', 'idempotencyKey', 'scheduledAt'];
  for (const [given, meant] of [
    ['reply_to', 'replyTo'],
    ['Reply-To', 'replyTo'],
    ['To', 'to'],
    ['txt', 'text'],
    ['idempotencykeys', 'idempotencyKey'],
    ['sheduledAt', 'scheduledAt'],
    ['cc', null],
    ['template', null],
    ['', null],
  ] as const)
    t.is(closestName(given, known), meant, given);
});
