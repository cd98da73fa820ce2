/** The rules about replies, held against real ones (test/fixtures/replies), and against hostile ones. */
import test from 'ava';
import { costsAtMost } from '#lab/cost.ts';
import { recordedReplies } from '#lab/mx/replies.ts';
import { table } from '#lab/table.ts';
import { classify, replyText, type SessionResult } from '#mail/deliver/outcome.ts';
import { rules } from '#mail/deliver/reply-rules/classify.ts';
import { retryAfterMs } from '#mail/deliver/reply-rules/retry-after.ts';
import type { Phase } from '#platform/values/glossary.ts';
import { parseReply } from '#platform/values/reply.ts';

const rows = recordedReplies();

const refusedWith = (code: number, text: string): SessionResult => ({
  kind: 'refused',
  phase: 'rcpt',
  reply: { code, enhanced: null, text },
});

/** A classification, written like the first line of a row. */
function classified(phase: Phase, raw: string): string {
  const { verdict, signal } = classify({ kind: 'refused', phase, reply: parseReply(raw)! });
  const { outcome, bounce, category, fault, rule } = verdict;
  const words = [outcome, bounce, category, fault, `(${rule})`].filter((word) => word !== null).join(' ');
  const host = signal === null ? '' : `, host ${signal}`;
  return `${words}${host}${verdict.retryAfterMs === null ? '' : `, again in ${verdict.retryAfterMs / 1000} s`}`;
}

/** A reply in one line with single spaces: what quotes are compared in. */
const inOneLine = (raw: string) => replyText(parseReply(raw)!).replace(/\s+/g, ' ');

for (const file of new Set(rows.map((row) => row.file))) {
  test(`real replies: ${file}`, (t) => {
    for (const row of rows.filter((one) => one.file === file)) {
      t.is(classified(row.phase, row.reply), row.expected, row.reply);
    }
  });
}

test('the table has 150 replies at least, each once and each with its source', (t) => {
  t.true(rows.length >= 150, `${rows.length} rows`);
  const texts = rows.map(({ reply }) => inOneLine(reply));
  t.deepEqual(
    texts.filter((text, at) => texts.indexOf(text) !== at),
    [],
  );
});

test('every rule speaks of a real reply, under a name of its own', (t) => {
  const reached = new Set(rows.map(({ expected }) => /\((.+?)\)/.exec(expected)![1]));
  const names = rules.map(({ name }) => name);
  t.deepEqual(
    names.filter((name) => !reached.has(name)),
    [],
  );
  t.is(new Set(names).size, names.length);
  for (const name of names) t.regex(name, /^[a-z0-9]+(-[a-z0-9]+)*$/);
});

test('every quote of a rule begins a reply of the table, of which that very rule speaks', (t) => {
  for (const { name, quotes } of rules) {
    t.true(quotes.length > 0, name);
    for (const quote of quotes) {
      const row = rows.find(({ reply }) => inOneLine(reply).startsWith(quote));
      t.true(row?.expected.includes(`(${name})`), `${name}: ${quote}`);
    }
  }
});

test('a 4xx never bounces, whatever it says', (t) => {
  for (const { phase, reply } of rows) {
    const temporary = reply.replaceAll(/(^|\n)5/g, '$14').replaceAll(/^(4\d\d[ -])5\./gm, '$14.');
    t.true(classified(phase, temporary).startsWith('deferred '), temporary);
  }
});

test('a block of our address never counts against the recipient', (t) => {
  for (const { fault, category, bounce } of rules) {
    if (fault !== 'recipient') t.not(bounce, 'hard');
    if (category === 'blocked' || category === 'auth') t.is(fault, 'sender');
  }
  const hard = rows.filter(({ expected }) => expected.startsWith('bounced hard'));
  for (const { expected, reply } of hard) {
    t.regex(expected, /^bounced hard (?:unknown_user|mailbox_disabled|dns) recipient /, reply);
  }
});

const hints: [text: string, seconds: number | null][] = table('replies/hints');

test('the time after which a reply asks us to try again is read from its words, within bounds', (t) => {
  for (const [text, seconds] of hints) t.is(retryAfterMs(text), seconds && seconds * 1000, text);
});

test('only a deferral has a time to come back', (t) => {
  const asked = 'try again in 300 seconds';
  t.is(
    classify({ kind: 'refused', phase: 'rcpt', reply: parseReply(`450 4.2.0 ${asked}`)! }).verdict
      .retryAfterMs,
    300_000,
  );
  t.is(
    classify({ kind: 'refused', phase: 'rcpt', reply: parseReply(`550 5.1.1 ${asked}`)! }).verdict
      .retryAfterMs,
    null,
  );
});

/** What the patterns with a repetition in them begin with, and a few single characters. */
const beginnings =
  "a| |<|[|a@|@|try |try again 1|wait 1:|Greylisted for 1|doesn't have a |messages from |Message from |" +
  'All messages from |IP |to use me |listed in Spamhaus.|LPN0000000|AUP#I|mailbox unavailable [a|' +
  'Recipient address rejected: Access denied [|' +
  // Half of a sentence each.
  'relay |unauthorized |relay not |size |over size |sender |content |your server |192.0.2.1 |daily |too many |helo |@ : ';

/** In `npm test` shorter. */
const longLength = process.env.TEST_SLOW ? 65_536 : 16_384;

test('a long reply made of the words that the rules look for is judged in no time', async (t) => {
  const quoted = rules.flatMap(({ quotes }) => quotes.map((quote) => quote.slice(4)));
  const seeds = [...beginnings.split('|'), ...quoted];
  for (const seed of seeds) {
    // Cut inside a word as well, so that a pattern almost matches all the way.
    for (const part of [seed, `${seed.slice(0, seed.length >> 1)} `]) {
      const text = part.repeat(Math.ceil(longLength / Math.max(part.length, 1)));
      const judge = () => [450, 550].map((code) => classify(refusedWith(code, text)));
      await costsAtMost(t, longLength / 32, judge, part);
    }
  }
});

test('a reply that is no UTF-8 is judged like any other', (t) => {
  for (const text of ['', '\u0000\u0001', '\ud800', '用户', 'ñ'.repeat(1000), '(#5.1.1', '#5.1.1x']) {
    const { verdict } = classify(refusedWith(550, text));
    t.is(verdict.outcome, 'bounced');
    t.is(verdict.bounce === 'hard', text === '(#5.1.1', JSON.stringify(text));
  }
});
