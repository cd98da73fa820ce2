/** The text part of a mail that has only HTML. */
import test from 'ava';
import { composeMessages } from '../../src/compose/message.ts';
import { textFromHtml } from '../../src/compose/text-from-html.ts';
import { toFields } from '../lab/compose-cases.ts';
import { signer } from '../lab/oversigned-mails.ts';
import { threadMs } from '../lab/thread-time.ts';

const cases: [what: string, html: string, text: string | null][] = [
  ['paragraphs and line ends', '<p>One<br>two</p><p>three</p>four', 'One\ntwo\n\nthree\n\nfour\n'],
  ['white space', ' a \n\t b<b> c</b>d&nbsp;e &amp; &lt;f&gt;', 'a b cd e & <f>\n'],
  [
    'what is not shown',
    '<title>T</title><style>a{}</style><script>x<b></script><!-- c -->a<svg><p>b</svg>',
    'a\n',
  ],
  ['a head without its end', '<html><head><title>T</title><body>a', 'a\n'],
  ['links', '<a href="https://a.invalid/?b=1&amp;c">click</a>!', 'click <https://a.invalid/?b=1&c>!\n'],
  [
    'a link to its own text',
    '<a href="https://a.invalid/">a.invalid</a> <a href="mailto:b@c.invalid">b@c.invalid</a>',
    'a.invalid b@c.invalid\n',
  ],
  [
    'links that are none',
    '<a href="#x">a</a> <a href="javascript:x()">b</a> <a name=c>c</a> <a href="http://x y">d</a>',
    'a b c d\n',
  ],
  [
    'a link that does not end',
    '<a href="https://a.invalid">one<a href="https://b.invalid">two',
    'one <https://a.invalid>two <https://b.invalid>\n',
  ],
  ['a list', '<ul><li>a<li>b</ul>c', '* a\n* b\n\nc\n'],
  ['a table', '<table><tr><td>a</td><td>b</td></tr><tr><td>c</table>', 'a b\nc\n'],
  [
    'an image',
    '<a href="https://a.invalid"><img src=x alt="Logo"></a><img src=y>',
    'Logo <https://a.invalid>\n',
  ],
  ['a preview filled up', 'Hi &#847;&zwnj;&nbsp;&#8203;<p>a&zwj;b', 'Hi\n\na\u200db\n'],
  ['no text', '<img src=x><p> </p>', null],
  ['no text but a link', '<a href="https://a.invalid/"></a>', null],
];
for (const [what, html, text] of cases) {
  test(what, (t) => {
    t.is(textFromHtml(html), text);
  });
}

test('lines are wrapped, but no word is cut', (t) => {
  const lines = textFromHtml(`${'word '.repeat(100)}${'x'.repeat(200)}`)!.split('\n');
  t.true(lines.every((line) => line.length <= 76 || line === 'x'.repeat(200)));
});

test('hostile HTML takes linear time', (t) => {
  const hostile = [
    '<b>',
    '<p> ',
    '<table><tr><td>x',
    '<ul><li>',
    '<',
    '&',
    '<!--',
    '<a href="https://x.invalid">y',
    'x',
    '<svg>',
  ];
  const started = threadMs();
  for (const one of hostile) textFromHtml(one.repeat(Math.floor(256_000 / one.length)));
  t.true(threadMs() - started < 10_000);
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
