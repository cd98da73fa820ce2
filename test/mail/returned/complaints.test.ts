/** Complaints: told once, obeyed always, and believed only where they carry our key. */
import test from 'ava';
import { goldenMail, startReturns, typesOf } from '#lab/scenes/returns.ts';

test('a complaint is told once, suppresses whatever the policy, and outlasts a bounce', async (t) => {
  const world = await startReturns(t, { settings: { POSTERN_SUPPRESS_AFTER: 'off' } });
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

test('a complaint counts by the Message-ID, not by a tracking link alone; of several recipients by both', async (t) => {
  const world = await startReturns(t);
  const tracking = { openTracking: true, clickTracking: true };
  const html = '<p>Your <a href="https://shop.example/order?id=4711&x=1">order</a></p>';
  const send = async (to: string[], fields: object = {}) => {
    const { emailId } = (await world.send({ to, html, tracking, subject: to.join(), ...fields })).body;
    await world.when(emailId, ({ status }) => status === 'delivered');
    return emailId as string;
  };
  const copyFor = (to: string) =>
    world.mx[0]!.messages.find(({ to: all }) => all.includes(to))!.raw.toString('latin1');
  const report = goldenMail('arf-anonymous').toString('latin1');
  const complain = async (copy: string, fields = '') => {
    const raw = report
      .replace(
        'Original-Mail-From: orders@shop.example',
        () => `Original-Mail-From: orders@shop.example${fields}`,
      )
      .replace('Content-Type: text/rfc822-headers', 'Content-Type: message/rfc822')
      .replace(/Received: from mail\.postern[\s\S]*?(?=\r\n--=_arf)/, () => copy);
    await world.comesBack('abuse@postern.invalid', raw, 'fbl@mail.example');
  };
  const isComplained = async (emailId: string) =>
    (await world.get(emailId)).recipients.map(({ status }: { status: string }) => status === 'complained');
  const withoutId = (copy: string) => copy.replace(/^Message-ID: .*\r\n/im, '');

  const ann = await send(['ann@there.invalid']);
  const copy = copyFor('ann@there.invalid');
  t.regex(copy, /\/t\/c\//);
  t.regex(copy, /^Message-ID: <[\w-]{32}@postern\.invalid>\r$/m);
  await complain(withoutId(copy));
  await complain(copy.replace(/(?<=^Message-ID: <.{22})./im, (tag) => (tag === 'A' ? 'B' : 'A')));
  await complain(copy.replace(/(?<=^Message-ID: <)[\w-]+/im, ann));
  await complain(`Subject: quoted\r\n\r\n${copy}`);
  t.deepEqual(await isComplained(ann), [false]);
  t.deepEqual(await world.db('suppressions').select(), []);
  await complain(copy);
  t.deepEqual(await isComplained(ann), [true]);

  // Without angle brackets, and in the report alone, as some providers write it; a forged one proves nothing there either.
  const bare = await send(['bob@there.invalid']);
  await complain(copyFor('bob@there.invalid').replace(/^(Message-ID: )<(.*)>/im, '$1$2'));
  t.deepEqual(await isComplained(bare), [true]);
  const named = await send(['eve@there.invalid']);
  const id = /^Message-ID: <(.*)>/im.exec(copyFor('eve@there.invalid'))![1]!;
  const last = id[31] === 'A' ? 'B' : 'A';
  await complain('Subject: redacted', `\r\nOriginal-Message-ID: ${id.slice(0, 31)}${last}${id.slice(32)}`);
  t.deepEqual(await isComplained(named), [false]);
  await complain('Subject: redacted', `\r\nOriginal-Message-ID: ${id}`);
  t.deepEqual(await isComplained(named), [true]);

  // One of two; the other one's link is another proof.
  const both = await send(['bea@there.invalid', 'cid@there.invalid']);
  await complain(copyFor('cid@there.invalid').split('\r\n\r\n', 1)[0]!);
  t.deepEqual(await isComplained(both), [false, false]);
  await complain(copyFor('cid@there.invalid'));
  t.deepEqual(await isComplained(both), [false, true]);

  // A Message-ID of the caller's own proves nothing.
  const own = { headers: { 'Message-ID': `<${ann}@postern.invalid>` } };
  const dan = await send(['dan@there.invalid'], own);
  await complain(copyFor('dan@there.invalid'));
  t.deepEqual(await isComplained(dan), [false]);
});
