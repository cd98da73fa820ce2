/** A send that repeats an earlier one sends nothing; the answer, the mail log, the email's events and its page say so. */
import { readFile } from 'node:fs/promises';
import test from 'ava';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { mailLogFile } from '#platform/values/mail-log.ts';

test('within two seconds a send that differs in its text is the first one, and that is told everywhere', async (t) => {
  const world = await startWorld(t);
  const browser = createBrowser(world);
  await setUp(browser, world);
  const to = 'ann@there.invalid';
  const first = await world.send({ to });
  const changes = [
    { text: 'Other' },
    { html: '<p>Other</p>' },
    { headers: { 'X-Other': '1' } },
    { replyTo: 'other@sender.invalid' },
    { attachments: [{ filename: 'a.txt', content: 'eA==' }] },
  ];
  for (const change of changes) {
    const again = await world.send({ to, ...change });
    t.deepEqual([again.status, again.body], [200, first.body]);
    t.is(again.headers.get('idempotent-replayed'), 'true');
  }
  t.is(first.headers.get('idempotent-replayed'), null);
  const { emailId } = first.body;
  const { events } = await world.when(emailId, ({ status }) => status === 'delivered');
  const repeats = events.filter(({ type }: { type: string }) => type === 'email.repeated');
  t.is(repeats.length, changes.length);
  const log = await until(async () => {
    const text = await readFile(mailLogFile(world.config.dataDir), 'utf8').catch(() => '');
    const lines = text.split('\n').filter((line) => line.includes('"event":"repeated"'));
    return lines.length === changes.length && lines;
  });
  t.like(JSON.parse(log[0]!), { emailId, recipient: to });
  t.regex(JSON.parse(log[0]!).msg, new RegExp(`^repeated <${to}> a repeat of email ${emailId} was ignored`));
  const page = await browser.get(`/dashboard/o/${world.orgId}/emails/${emailId}`);
  t.regex(page.text, /A repeat was ignored/);

  await world.clock.advance(3000);
  const later = await world.send({ to, text: 'Other' });
  t.not(later.body.emailId, emailId);
  const keyed = { to, subject: 'Keyed', idempotencyKey: 'k' };
  const one = await world.send(keyed);
  t.is((await world.send(keyed)).headers.get('idempotent-replayed'), 'true');
  const kept = await world.when(one.body.emailId, ({ status }) => status === 'delivered');
  t.is(kept.events.filter(({ type }: { type: string }) => type === 'email.repeated').length, 1);
  // A dry run tells of the repeat, and leaves no trace.
  await world.call('POST', '/api/public/email/send?dryRun=true', {
    body: JSON.stringify({ from: 'app@sender.invalid', text: 'x', ...keyed }),
  });
  const after = await world.get(one.body.emailId);
  t.is(after.events.filter(({ type }: { type: string }) => type === 'email.repeated').length, 1);
});

test('after a clock that was two hours ahead is set right, the same mail is sent again; a key still names one send', async (t) => {
  const world = await startWorld(t);
  const [to, subject] = ['ann@there.invalid', 'Your code'];
  const keyed = { to, subject: 'Keyed', idempotencyKey: 'k' };
  await world.clock.jump('2h');
  const ahead = await world.send({ to, subject });
  const first = await world.send(keyed);
  world.clock.setBack('2h');
  const right = await world.send({ to, subject });
  t.is(right.headers.get('idempotent-replayed'), null);
  t.not(right.body.emailId, ahead.body.emailId);
  const again = await world.send({ to, subject });
  t.is(again.body.emailId, right.body.emailId);
  t.is((await world.send(keyed)).body.emailId, first.body.emailId);
  for (const { body } of [ahead, right])
    await world.when(body.emailId, ({ status }) => status === 'delivered');
  t.is(world.mx[0]!.messages.length, 3);
});
