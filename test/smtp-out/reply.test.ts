/** SMTP replies taken apart. A reply's lines are what nodemailer hands over: the whole text, line ends inside. */
import test from 'ava';
import { parseReply } from '../../src/smtp-out/reply.ts';

const replies: [what: string, raw: string, code: number, enhanced: string | null, text: string][] = [
  ['one line', '250 OK', 250, null, 'OK'],
  ['an enhanced code', '250 2.1.5 Recipient ok', 250, '2.1.5', 'Recipient ok'],
  ['a refusal', '550 5.1.1 <ann@there.invalid>: unknown', 550, '5.1.1', '<ann@there.invalid>: unknown'],
  ['a deferral', '451 4.7.1 Greylisted', 451, '4.7.1', 'Greylisted'],
  ['an intermediate reply', '354 Go ahead', 354, null, 'Go ahead'],
  ['a bare code', '250', 250, null, ''],
  ['a code and a space', '250 ', 250, null, ''],
  ['a code and an enhanced code', '550 5.1.1', 550, '5.1.1', ''],
  ['an enhanced code of many digits', '550 5.7.606 Banned', 550, '5.7.606', 'Banned'],
  ['white space around', '550   5.1.1   no such user  ', 550, null, '5.1.1   no such user'],
  [
    'several lines',
    '250-mx.invalid greets you\r\n250-PIPELINING\r\n250 SIZE',
    250,
    null,
    'mx.invalid greets you PIPELINING SIZE',
  ],
  [
    'an enhanced code in each line',
    '550-5.1.1 The account does not exist.\r\n550-5.1.1 Please check it,\r\n550 5.1.1 or try another.',
    550,
    '5.1.1',
    'The account does not exist. Please check it, or try another.',
  ],
  ['bare LF between lines', '451-4.3.0 later\n451 4.3.0 please', 451, '4.3.0', 'later please'],
  ['an empty line of a long reply', '250-one\r\n250-\r\n250 two', 250, null, 'one two'],
  ['a line end at the end', '250 2.0.0 queued\r\n', 250, '2.0.0', 'queued'],
  ['a code that its enhanced code belies', '550 4.2.2 full', 550, '4.2.2', 'full'],
  ['numbers that are no enhanced code', '250 2.0 queued', 250, null, '2.0 queued'],
  ['an enhanced class that is none', '250 3.1.1 odd', 250, null, '3.1.1 odd'],
  ['an enhanced code that goes on', '550 5.1.1.1 odd', 550, null, '5.1.1.1 odd'],
  ['an address that begins like one', '250 2.0.0@there.invalid ok', 250, null, '2.0.0@there.invalid ok'],
  ['CR CR LF', '250-one\r\r\n250 two\r', 250, null, 'one two'],
  ['control characters', '250 a\0b\x1b[31m', 250, null, 'a\ufffdb\ufffd[31m'],
  ['a bare CR', '250 a\rb', 250, null, 'a\ufffdb'],
  ['another code of the class in the last line', '550-one\r\n554 two', 554, null, 'one two'],
  ['a refusal in the last line', '220-mx.invalid\r\n554 5.7.1 blocked', 554, '5.7.1', 'mx.invalid blocked'],
  ['consent in the last line', '550-5.1.1 no\r\n250 yes', 250, null, 'no yes'],
  ['an enhanced code in the first line only', '550-5.1.1 no\r\n550 such user', 550, '5.1.1', 'no such user'],
  ['an enhanced code in the last line only', '550-no\r\n550 5.1.1 such user', 550, '5.1.1', 'no such user'],
  ['an enhanced code of a line with another code', '450-4.7.1 a\r\n550 b', 550, null, 'a b'],
  ['a line without a code', '550-one\r\ntwo\r\n550 three', 550, null, 'one two three'],
  ['no code in the last line', '554-one\r\ntwo', 554, null, 'one two'],
  ['a tab after the code', '250\tOK', 250, null, 'OK'],
  ['UTF-8', '550 5.1.1 jörg ist unbekannt', 550, '5.1.1', 'jörg ist unbekannt'],
];

for (const [what, raw, code, enhanced, text] of replies) {
  test(`a reply: ${what}`, (t) => t.deepEqual(parseReply(raw), { code, enhanced, text }));
}

test('a reply without end is cut short', (t) => {
  t.is(parseReply(`550 ${'x'.repeat(60_000)}`)!.text.length, 4000);
});

const garbage: [what: string, raw: string][] = [
  ['nothing', ''],
  ['words', 'hello there'],
  ['HTTP', 'HTTP/1.1 400 Bad Request'],
  ['SSH', 'SSH-2.0-OpenSSH_9.6'],
  ['two digits', '25 OK'],
  ['four digits', '2500 OK'],
  ['a code without a space', '250OK'],
  ['1xx', '150 wait'],
  ['6xx', '600 what'],
  ['000', '000'],
  ['a space before the code', ' 250 OK'],
  ['a minus', '-50 OK'],
  ['digits of another script', '٢٥٠ OK'],
  ['a reply in the second line', 'hello\r\n250 OK'],
];

for (const [what, raw] of garbage) {
  test(`no reply: ${what}`, (t) => t.is(parseReply(raw), null));
}
