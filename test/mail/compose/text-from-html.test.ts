/** The text part of a mail that has only HTML. */
import test from 'ava';
import { toFields } from '#lab/compose-cases.ts';
import { costsAtMost } from '#lab/cost.ts';
import { signer } from '#lab/oversigned-mails.ts';
import { column, table } from '#lab/table.ts';
import { composeMessages } from '#mail/compose/message.ts';
import { textFromHtml } from '#mail/compose/text-from-html.ts';

const cases: [what: string, html: string, text: string | null][] = table('compose/text-from-html');
for (const [what, html, text] of cases) {
  test(what, (t) => {
    t.is(textFromHtml(html), text);
  });
}

test('lines are wrapped, but no word is cut', (t) => {
  const lines = textFromHtml(`${'word '.repeat(100)}${'x'.repeat(200)}`)!.split('\n');
  t.true(lines.every((line) => line.length <= 76 || line === 'x'.repeat(200)));
});

test('hostile HTML takes linear time', async (t) => {
  const hostile = column('compose/hostile-html');
  await costsAtMost(t, 10_000, () => {
    for (const one of hostile) textFromHtml(one.repeat(Math.floor(256_000 / one.length)));
  });
  t.is(textFromHtml('x'.repeat(300_000)), null);
});

test('a mail of HTML gets it, unless the caller or the setting says otherwise', (t) => {
  const off = { opens: false, clicks: false, trackers: [] as never };
  const typesOf = (fields: object) => {
    const content = { ...toFields({ html: '<p>Hi' }), ...fields };
    const { messages } = composeMessages(content, off, signer);
    return messages[0]!
      .toString()
      .match(/^Content-Type: [^;]+/gm)!
      .map((one) => one.slice(14));
  };
  const both = ['multipart/alternative', 'text/plain', 'text/html'];
  t.deepEqual(typesOf({ textFromHtml: true }), both);
  t.deepEqual(typesOf({ textFromHtml: true, text: '' }), ['text/html']);
  t.deepEqual(typesOf({ textFromHtml: true, html: '<img src=x>' }), ['text/html']);
  t.deepEqual(typesOf({ textFromHtml: false }), ['text/html']);
});
