/** The reply in a text: what is found, and that no text takes long. */
import test from 'ava';
import { costsAtMost } from '#lab/cost.ts';
import { replyIn } from '#platform/vendor/email-reply-parser.ts';

test('what a mail quotes is left out, in many languages, and over two lines', (t) => {
  for (const header of [
    'On Mon, 28 Nov 2026, Ann <ann@there.invalid>\nwrote:',
    'Le lun. 28 nov. 2026, Ann <ann@there.invalid>\na écrit\u00a0:',
    'Am Montag, 28. November 2026 schrieb Ann <ann@there.invalid>:',
    'Op ma 28 nov. 2026 om 10:00\nschreef Ann <ann@there.invalid>:',
    'W dniu 28.11.2026\nAnn pisze:',
    '在 2026年11月28日，Ann\n写道：',
    '-----Original Message-----',
    'Fra: Ann <ann@there.invalid>\nSendt: 28. november 2026 10:00\nTil: Shop\nEmne: Din ordre',
    'Från: Ann [ann@there.invalid]\nSkickat: den 28 november 2026 10:00',
    '差出人： Ann <ann@there.invalid>\n送信日時: 2026年11月28日',
    'On 28 November 2026 at 10:00, Ann (ann@there.invalid) said:',
    '2026年11月28日(土) 10:00 Ann <ann@there.invalid>:',
    'Subject: Your order\nFrom: ann@there.invalid\nTo: shop@here.invalid\nDate: Thu, 18 Jun 2026 07:45:36 +0000',
    '________________________________\nFrom: Ann There\nDate: 18 June 2026\nTo: Shop\nSubject: Your order',
    '-------- Forwarded Message --------\nSubject: \tYour order\nDate: \tThu, 18 Jun 2026\nFrom: \tAnn',
  ])
    t.is(
      replyIn(`Yes 👍, $' and $& too.\r\n\r\n${header}\r\n\r\n> Really?\r\n> Ann`),
      "Yes 👍, $' and $& too.",
      header,
    );
});

test('an answer that only reads like the line above a quoted mail stays', (t) => {
  for (const text of [
    'Fra: Oslo\nTil: Bergen',
    'On the phone you said:\nnext week',
    'Od: 8:00\nDo: 16:00',
    'Please change it:\n\nFrom: Oslo\nTo: Bergen\nDate: Monday',
    'From: Ann\nTo: the shop\nSubject: a question\n\nIs it there?',
    'These are wrong:\nFrom: Ann\nTo: the shop\nSubject: a question',
  ])
    t.is(replyIn(text), text);
});

test('a quoted header that reads like a replacement repeats nothing', (t) => {
  const text = `Op ${"$' $` ".repeat(5000)}\nschreef Ann:\n\nthe rest`;
  t.true(replyIn(text).length <= text.length);
});

test('32 KB of what almost begins a quotation take no long time', async (t) => {
  const texts = [
    '\n',
    `${' '.repeat(900)}\n`,
    `${'>'.repeat(900)}\n`,
    `On ${'a '.repeat(480)}\n`,
    `${'a on at wrote '.repeat(70)}\n`,
    'Op a schreef \n',
    'abc. x skrev : \n',
    'a\n\nFrom: a\nTo: b\n',
    `From: ${' '.repeat(900)}\n`,
    'Dnia a pisze\n',
    '在a\n',
    `01.01.2001 ${'01.01" <>'.repeat(100)}\n`,
    `From: ${'< '.repeat(450)}\n`,
    `Fra: ${'<@ '.repeat(300)}\n`,
    `On ${'(@ '.repeat(300)}\n`,
  ];
  for (const line of texts) {
    const text = line.repeat(Math.floor((32 * 1024) / line.length));
    await costsAtMost(t, 1000, () => replyIn(text), JSON.stringify(line.slice(0, 20)));
  }
});
