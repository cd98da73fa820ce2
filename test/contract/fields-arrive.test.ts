/**
 * docs/api.md, sections 2.1 to 2.3: the send request, what its fields come to at the other end; fields-take-and-refuse.test.ts has what they
 * take.
 */
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import { until } from '#lab/until.ts';
import { isError, isSent, mailTo } from './answer.ts';
import { emailPath, openTenant, people, sharedWorld, someone, type Tenant } from './client.ts';

let tenant: Tenant;
const world = sharedWorld(async (made) => {
  tenant = await openTenant(made);
});

// What the fields come to, at the other end.

test('2.1 to, from, subject, html, text, replyTo: what arrives', async (t) => {
  const to = people(2);
  const answer = await tenant.send({
    to,
    from: 'App <app@sender.invalid>',
    subject: 'Your order',
    text: 'Thanks, Jörg',
    html: '<p>Thanks, <b>Jörg</b></p>',
    replyTo: 'help@there.invalid',
  });
  isSent(t, answer, to);
  for (const recipient of to) {
    const { header, parts } = await mailTo(world(), recipient);
    t.regex(header('From').join(), /^"?App"? <app@sender\.invalid>$/);
    t.deepEqual(header('Message-ID'), [`<${answer.body.id}>`]);
    t.deepEqual(header('Subject'), ['Your order']);
    t.deepEqual(header('Reply-To'), ['help@there.invalid']);
    t.deepEqual(
      parts.map(({ type, content }) => [type.split(';')[0], content.toString().trim()]),
      [
        ['text/plain', 'Thanks, Jörg'],
        ['text/html', '<p>Thanks, <b>Jörg</b></p>'],
      ],
    );
  }
});

test('2.1 from: the domain must be registered in the organization', async (t) => {
  const other = await openTenant(world());
  await other.addDomain('other.invalid');
  for (const from of ['app@nobodys.invalid', 'App <app@sub.sender.invalid>', 'app@other.invalid'])
    isError(t, await tenant.send({ from }), '403 DOMAIN_NOT_FOUND', from);
  isSent(t, await other.send({ from: 'app@other.invalid' }));
});

test('2.1 tracking: overrides; a member left out keeps the setting of the sender domain, off at first', async (t) => {
  const own = await openTenant(world());
  const seen = async (fields: object) => {
    const { body } = await own.send(fields);
    return (await own.call('GET', emailPath(body.emailId))).body.tracking;
  };
  t.deepEqual(await seen({}), { openTracking: false, clickTracking: false });
  await cliOf(t, world()).json('domain tracking sender.invalid --opens on --clicks off --org', own.orgId);
  await until(async () => (await seen({})).openTracking, { what: 'the setting' });
  t.deepEqual(await seen({}), { openTracking: true, clickTracking: false });
  t.deepEqual(await seen({ tracking: {} }), { openTracking: true, clickTracking: false });
  t.deepEqual(await seen({ tracking: { clickTracking: true } }), { openTracking: true, clickTracking: true });
  t.deepEqual(await seen({ tracking: { openTracking: false } }), {
    openTracking: false,
    clickTracking: false,
  });
});

test('2.2 filename, content, contentType: what arrives', async (t) => {
  const to = someone();
  const content = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  const attachments = [
    { filename: 'all bytes.bin', content: content.toString('base64'), contentType: 'application/x-bytes' },
    { filename: 'note.txt', content: 'aGk=' },
  ];
  isSent(t, await tenant.send({ to, attachments }));
  const [, bytes, note] = (await mailTo(world(), to)).parts;
  t.regex(bytes!.type, /^application\/x-bytes/);
  t.regex(bytes!.disposition, /^attachment;.*filename="all bytes\.bin"/);
  t.deepEqual(bytes!.content, content);
  t.regex(note!.disposition, /^attachment;.*filename="?note\.txt"?/);
  t.is(note!.content.toString(), 'hi');
});
