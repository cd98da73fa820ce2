/**
 * Files as applications give them: empty ones (a CSV without rows), other forms than base64 (browsers), names without
 * an extension. By every way in, as the recipient gets them.
 */
import test from 'ava';
import PostalMime from 'postal-mime';
import { base64Content } from '#front/api/send/base64-content.ts';
import { costsAtMost } from '#lab/cost.ts';
import { messageTo, type SubmissionWorld, startSubmission } from '#lab/scenes/submission.ts';
import { type GivenFile, waysIn } from '#lab/scenes/ways-in.ts';
import { table } from '#lab/table.ts';

const bytes = Buffer.from([0xfb, 0xef, 0xff, 0x3e, 0x3f, 0x00, 0x61]);
const standard = bytes.toString('base64');

const forms: [string, Buffer][] = [
  [standard, bytes],
  [standard.replace(/(.{4})/g, '$1\r\n'), bytes],
  [`\n${standard.slice(0, 3)}\n${standard.slice(3)}\n`, bytes],
  ['', Buffer.alloc(0)],
  ['\r\n', Buffer.alloc(0)],
];

const faults: [string, RegExp][] = table('api/base64-faults');

test('base64 is read with line breaks, and what is none is named', (t) => {
  for (const [given, expected] of forms) t.deepEqual(base64Content.parse(given), expected, given);
  for (const [given, fault] of faults) {
    const { error } = base64Content.safeParse(given);
    t.regex(error!.issues[0]!.message, /^must be base64: /);
    t.regex(error!.issues[0]!.message, fault, given);
  }
});

test('20 MB of anything are judged in linear time', async (t) => {
  const large = 20 * 1024 * 1024;
  const hostile = ['A', '=', '\n', 'A\n', ' ', 'data:', '-+', 'data:;base64;', 'é'].map((text) =>
    text.repeat(large / text.length),
  );
  for (const text of [...hostile, `data:${' '.repeat(large)}x;base64,`])
    await costsAtMost(t, 5_000, () => base64Content.safeParse(text), text.slice(0, 10));
});

async function received(world: SubmissionWorld, to: string) {
  const { raw } = await messageTo(world, to);
  const { attachments } = await PostalMime.parse(raw);
  return attachments.map(({ filename, mimeType, content }) => ({
    filename,
    mimeType,
    size: (content as ArrayBuffer).byteLength,
  }));
}

test('a file of no bytes is taken by every way in; Postmark’s API refuses it as Postmark does', async (t) => {
  const world = await startSubmission(t);
  const html = '<p>Hi</p>';
  const empty: GivenFile = { name: 'rows.csv', content: '', type: 'text/csv' };
  const full: GivenFile = { name: 'a.bin', content: standard };
  for (const [way, send] of Object.entries(waysIn)) {
    const to = `${way}@there.invalid`;
    const { status, text } = await send(world, { to, html, files: [empty, full] });
    if (way === 'postmark') {
      t.is(status, 422);
      t.regex(text, /Content.*must not be empty/);
      continue;
    }
    t.true(status < 300, `${way}: ${status} ${text}`);
    t.deepEqual(
      await received(world, to),
      [
        { filename: 'rows.csv', mimeType: 'text/csv', size: 0 },
        { filename: 'a.bin', mimeType: 'application/octet-stream', size: 7 },
      ],
      way,
    );
  }
});

/** What the APIs derive from a name. Over SMTP, the client gives the type. */
const types: Record<string, string> = Object.fromEntries(table('compose/types-of-names'));

test('the type of a file comes from the extension of its name; without one it is application/octet-stream', async (t) => {
  const world = await startSubmission(t);
  const files = Object.keys(types).map((name) => ({ name, content: standard }));
  for (const way of ['api', 'resend', 'postmark', 'sendgrid', 'mailgun']) {
    const to = `${way}@there.invalid`;
    // A form has no name with a slash.
    const given = way === 'mailgun' ? files.filter(({ name }) => !name.includes('/')) : files;
    const { status, text } = await waysIn[way]!(world, { to, html: '<p>Hi</p>', files: given });
    t.true(status < 300, `${way}: ${status} ${text}`);
    for (const { filename, mimeType } of await received(world, to))
      t.is<string | undefined, string | undefined>(mimeType, types[filename!], `${way}: ${filename}`);
  }
});

test('a type that is given is kept, and cannot add a header', async (t) => {
  const world = await startSubmission(t);
  const file = (contentType: string) => ({ filename: 'x', content: standard, contentType });
  const send = (...attachments: object[]) =>
    world.send({ to: 'ann@there.invalid', html: '<p>Hi</p>', attachments });
  for (const bad of ['text/plain\r\nBcc: x@y.invalid', 'text/plain; x="\r\n"'])
    t.is((await send(file(bad))).status, 400, bad);
  t.is((await send(file('application/x-own; version="1;2"'), file('image/png'))).status, 200);
  const [own, image] = await received(world, 'ann@there.invalid');
  t.deepEqual([own!.mimeType, image!.mimeType], ['application/x-own', 'image/png']);
});

/** tutao/tutanota#3085, silverstripe/silverstripe-userforms#5. */
test('without a type that can be read, it follows from the name, in every way in', async (t) => {
  const world = await startSubmission(t);
  const types = [
    '',
    ' ',
    'pdf',
    '.pdf',
    'Word document',
    'undefined',
    'null',
    'a/b/c',
    'text/plain, text/html',
    'application/',
  ];
  for (const way of ['api', 'resend', 'postmark', 'sendgrid', 'mailgun']) {
    const to = `untyped-${way}@there.invalid`;
    const files = types.map((type, at) => ({ name: `${at}.pdf`, type, content: standard }));
    const { status, text } = await waysIn[way]!(world, { to, html: '<p>Hi</p>', files });
    t.true(status < 300, `${way}: ${status} ${text}`);
    const found = await received(world, to);
    t.is(found.length, types.length, way);
    for (const { filename, mimeType } of found) t.is(mimeType, 'application/pdf', `${way}: ${filename}`);
  }
});
