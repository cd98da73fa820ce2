/** The rules as pure functions: thresholds, the narrowest group, what is forgiven and what another group explains. */
import test from 'ava';
import { classify } from '#mail/deliver/outcome.ts';
import {
  breachesIn,
  type CountedGroup,
  groupToBlame,
  type JudgedCounts,
  ruleBrokenBy,
} from '#mail/record/auto-pause/pause-rules.ts';
import { parseReply } from '#platform/values/reply.ts';

const none: JudgedCounts = { delivered: 0, bounced: 0, hard: 0, complained: 0 };

const group = (
  kind: CountedGroup['kind'],
  name: string,
  counts: Partial<JudgedCounts>,
  more: Partial<CountedGroup> = {},
): CountedGroup => ({
  kind,
  name,
  ...none,
  ...counts,
  forgiven: null,
  isKnown: false,
  isSettled: false,
  ...more,
});

/** All mail of the organization is that of its keys. */
const found = (groups: CountedGroup[]) => {
  const all = groups.filter(({ kind }) => kind === 'key').reduce(sum, none);
  return breachesIn(groups, all).map(
    ({ group: { kind, name }, rule, count, of }) => `${kind} ${name}: ${rule} ${count}/${of}`,
  );
};

const sum = (a: Partial<JudgedCounts>, b: Partial<JudgedCounts>): JudgedCounts => ({
  delivered: (a.delivered ?? 0) + (b.delivered ?? 0),
  bounced: (a.bounced ?? 0) + (b.bounced ?? 0),
  hard: (a.hard ?? 0) + (b.hard ?? 0),
  complained: (a.complained ?? 0) + (b.complained ?? 0),
});

test('complaints: from 0.3 % of 500 delivered mails on', (t) => {
  t.deepEqual(found([group('key', 'k', { delivered: 499, complained: 100 })]), []);
  t.deepEqual(found([group('key', 'k', { delivered: 500, complained: 1 })]), []);
  t.deepEqual(found([group('key', 'k', { delivered: 500, complained: 2 })]), ['key k: complaints 2/500']);
  t.deepEqual(found([group('key', 'k', { delivered: 1000, complained: 3 })]), ['key k: complaints 3/1000']);
  t.deepEqual(found([group('key', 'k', { delivered: 1001, complained: 3 })]), []);
});

test('hard bounces: from 5 % of 200 mails with an outcome on; soft ones do not count', (t) => {
  t.deepEqual(found([group('key', 'k', { delivered: 99, bounced: 100, hard: 100 })]), []);
  t.deepEqual(found([group('key', 'k', { delivered: 190, bounced: 10, hard: 9 })]), []);
  t.deepEqual(found([group('key', 'k', { delivered: 190, bounced: 10, hard: 10 })]), [
    'key k: hard_bounces 10/200',
  ]);
  t.deepEqual(found([group('key', 'k', { delivered: 100, bounced: 300, hard: 0 })]), []);
});

const bad = { delivered: 900, bounced: 100, hard: 100 };
const good = { delivered: 9000, bounced: 10, hard: 10 };
test('the narrowest group is held, and explains the failures of those that it is in', (t) => {
  const newsletter = group('stream', 'news', bad);
  const key = group('key', 'k', sum(bad, { delivered: 500, bounced: 0, hard: 0 }));
  t.deepEqual(found([key, newsletter]), ['stream news: hard_bounces 100/1000']);
});

test('of groups with the same mail, the key is held', (t) => {
  const all = ['tag', 'stream', 'key'] as const;
  t.deepEqual(found(all.map((kind) => group(kind, 'x', bad))), ['key x: hard_bounces 100/1000']);
});

test('a key whose mail is bad with every tag is held when the second tag is', (t) => {
  const first = group('tag', 'a', bad, { isKnown: true, isSettled: true });
  const second = group('tag', 'b', { delivered: 180, bounced: 20, hard: 20 });
  const key = group('key', 'k', sum(bad, { delivered: 180, bounced: 20, hard: 20 }));
  t.deepEqual(found([first, second, key]), ['key k: hard_bounces 20/200']);
});

test('two keys that are both bad are both held, and a good one is not', (t) => {
  const groups = [group('key', 'a', bad), group('key', 'b', bad), group('key', 'c', good)];
  t.deepEqual(found(groups), ['key a: hard_bounces 100/1000', 'key b: hard_bounces 100/1000']);
});

test('a group that a reply has stopped explains nothing that is no failure', (t) => {
  const clean = group('stream', 'news', { delivered: 9000 }, { isKnown: true, isSettled: true });
  t.deepEqual(found([clean, group('key', 'k', { delivered: 10_000, complained: 25 })]), []);
});

test('keys with little mail that break the rule together: the worst, until the rest does not', (t) => {
  const small = ['a', 'b', 'c'].map((name, at) =>
    group('key', name, { delivered: 90, bounced: 12 + at, hard: 12 + at }),
  );
  const large = group('key', 'large', { delivered: 600, bounced: 20, hard: 20 });
  t.deepEqual(found([...small, large]), ['key c: hard_bounces 14/104', 'key b: hard_bounces 13/103']);
  t.deepEqual(found([small[0]!]), [], 'too little mail in all');
});

test('what counted at the release is forgiven', (t) => {
  const counts = (delivered: number, hard: number) => ({ ...none, delivered, bounced: hard, hard });
  const released = (now: JudgedCounts) =>
    group('key', 'k', now, { forgiven: counts(900, 100), isKnown: true });
  t.deepEqual(found([released(counts(900, 100))]), []);
  t.deepEqual(found([released(counts(1090, 109))]), [], 'too little mail since');
  t.deepEqual(found([released(counts(1090, 110))]), ['key k: hard_bounces 10/200']);
});

test('a reply is held against the group with the least mail; tags need some', (t) => {
  const ofMail = [
    group('key', 'k', { delivered: 5000 }),
    group('tag', 'user=7', { delivered: 1 }),
    group('tag', 'campaign=5', { delivered: 700 }),
  ];
  t.like(groupToBlame(ofMail), { kind: 'tag', name: 'campaign=5' });
  t.like(groupToBlame(ofMail.slice(0, 2)), { kind: 'key', name: 'k' });
  t.is(groupToBlame([]), undefined);
});

const ruleOf = (text: string) => {
  const { verdict } = classify({ kind: 'refused', phase: 'dot', reply: parseReply(text)! });
  const { bounce: type, category, fault, diagnostic } = verdict;
  return type && ruleBrokenBy({ type, category: category!, fault: fault!, diagnostic });
};

for (const [reply, rule] of [
  ['554 5.7.1 <trap@example.org>: Recipient address rejected: Spamtrap', 'spam_trap'],
  ['550 5.7.1 spamtrap hit', 'spam_trap'],
  [
    '550 Blacklisted URL in message. (bad.example) in [black]. See http://lookup.uribl.com.',
    'listed_content',
  ],
  ['554 rejected due to spam URL in content', 'listed_content'],
  ['550 5.7.1 Your email breaches local URIBL policy.', 'listed_content'],
  ['550 5.7.1 Service unavailable, Client host [50.31.49.41] blocked using Spamhaus.', null],
  ['550 5.7.1 Message content rejected, UBE, id=00000-22-225', null],
  ['554 5.7.1 Spam message rejected', null],
  ['550 5.1.1 user unknown', null],
  ['451 4.7.1 spamtrap hit', null],
] as const)
  test(`"${reply}" breaks ${rule ?? 'no rule'}`, (t) => t.is(ruleOf(reply), rule));
