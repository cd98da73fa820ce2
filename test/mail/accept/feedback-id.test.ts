/** Feedback-ID, by which Gmail's Postmaster Tools say which mail people report: every mail has one, and none says who the reader is. */
import test from 'ava';
import { makeStream } from '#accounts/manage-streams.ts';
import { areSigned } from '#lab/dkim.ts';
import { loggedIn, messageTo, startSubmission, submit } from '#lab/scenes/submission.ts';
import { createFeedbackId } from '#mail/accept/feedback-id.ts';

const feedbackIdOf = createFeedbackId('bounces.example.org');
const orgId = '01890000-0000-7000-8000-0123456789ab';

test('it is tag, stream, organization and sender, each with its kind, in Google’s format', (t) => {
  const value = feedbackIdOf({ orgId, stream: 'news', tags: { tag: 'welcome', plan: 'free' } });
  t.regex(value, /^tag-welcome:stream-news:org-0123456789ab:postern-[0-9a-f]{6}$/);
  const sender = value.split(':').at(-1)!;
  t.true(sender.length >= 5 && sender.length <= 15);
  t.is(feedbackIdOf({ orgId, stream: null, tags: {} }), `stream-transactional:org-0123456789ab:${sender}`);
  t.not(createFeedbackId('bounces.example.net')({ orgId, stream: null, tags: {} }).split(':').at(-1), sender);
});

test('a tag that may be about a person is left out', (t) => {
  const tagIn = (tag: string) =>
    /^tag-([^:]+):/.exec(feedbackIdOf({ orgId, stream: null, tags: { tag } }))?.[1];
  const tags: [tag: string, shown?: string][] = [
    ['welcome', 'welcome'],
    ['Password reset', 'Password-reset'],
    ['receipts,orders', 'receipts'],
    ['sale-2026', 'sale-2026'],
    [''],
    ['ann@there.invalid'],
    ['4711'],
    ['user-12345'],
    ['0c9f4a6e-2f4f-4d3e-9c55-1b7d1c1e7a10'],
    ['a:b'],
    ['Grüße'],
    ['a\r\nBcc: x'],
    ['x'.repeat(41)],
  ];
  for (const [tag, shown] of tags) t.is(tagIn(tag), shown, tag);
  t.is(feedbackIdOf({ orgId, stream: null, tags: { user: 'ann' } }).split(':').length, 3);
});

test('each mail has one, which is signed, by whichever way it came; a caller’s own wins', async (t) => {
  const world = await startSubmission(t);
  await makeStream(world.db, { orgId: world.orgId, name: 'news', kind: 'subscribed' }, 0);
  const talk = await loggedIn({ world, key: world.key, orgId: world.orgId });
  let count = 0;
  const found = async (send: (to: string) => Promise<unknown>) => {
    count += 1;
    const to = `f${count}@there.invalid`;
    await send(to);
    const head = (await messageTo(world, to)).raw.toString('latin1').split('\r\n\r\n', 1)[0]!;
    return head.match(/^Feedback-ID:.*$/gim) ?? [];
  };
  const byCall = (fields: object) => found((to) => world.send({ to, subject: `Call ${to}`, ...fields }));
  const byMail = (...lines: string[]) =>
    found((to) =>
      submit(talk, [to], ['From: app@sender.invalid', `To: ${to}`, `Subject: ${to}`, ...lines, '', 'Hi']),
    );
  const org = `org-${world.orgId.slice(-12)}`;
  const ours = (start: string) => new RegExp(`^Feedback-ID: ${start}${org}:postern-[0-9a-f]{6}\r?$`);
  const [plain, ...others] = await byCall({});
  t.regex(plain!, ours('stream-transactional:'));
  t.deepEqual(others, []);
  t.regex((await byCall({ stream: 'news', tags: { tag: 'tips' } }))[0]!, ours('tag-tips:stream-news:'));
  t.deepEqual(await byCall({ headers: { 'feedback-id': 'mine:acme' } }), ['feedback-id: mine:acme']);
  t.deepEqual(await byCall({ headers: { 'Feedback-ID': '' } }), [], 'an empty one leaves it out');
  t.regex((await byMail('X-Postern-Tag-tag: tips'))[0]!, ours('tag-tips:stream-transactional:'));
  t.deepEqual(await byMail('Feedback-ID: mine:acme'), ['Feedback-ID: mine:acme']);
  await areSigned(t, world);
});
