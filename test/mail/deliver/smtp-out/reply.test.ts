/** SMTP replies taken apart. A reply's lines are what nodemailer hands over: the whole text, line ends inside. */
import test from 'ava';
import { table } from '#lab/table.ts';
import { parseReply } from '#platform/values/reply.ts';

const replies: [what: string, raw: string, code: number, enhanced: string | null, text: string][] =
  table('smtp-out/replies');

for (const [what, raw, code, enhanced, text] of replies) {
  test(`a reply: ${what}`, (t) => t.deepEqual(parseReply(raw), { code, enhanced, text }));
}

test('a reply without end is cut short', (t) => {
  t.is(parseReply(`550 ${'x'.repeat(60_000)}`)!.text.length, 4000);
});

const garbage: [what: string, raw: string][] = table('smtp-out/not-replies');

for (const [what, raw] of garbage) {
  test(`no reply: ${what}`, (t) => t.is(parseReply(raw), null));
}
