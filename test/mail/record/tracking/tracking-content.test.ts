/**
 * Tracking of mail as people write it: links that opt out by the attribute of any service (SendGrid's, Postmark's and Mailgun's
 * documentation), and HTML that ends in the middle (templates cut off by a size limit, a CMS's unclosed comment).
 */
import test from 'ava';
import { parse } from 'parse5';
import { setDomainTracking } from '#accounts/rows/domains-table.ts';
import { partOf } from '#lab/mail.ts';
import { messageTo, startSubmission } from '#lab/scenes/submission.ts';
import { waysIn } from '#lab/scenes/ways-in.ts';
import { column, table } from '#lab/table.ts';
import { editedParts } from '#mail/compose/html-parts.ts';
import { prepareTracking } from '#mail/compose/tracking/html-tracking.ts';
import { trackedParts } from '#mail/compose/tracking/raw-message-tracking.ts';

const both = { opens: true, clicks: true };
const tracker = { pixel: () => 'https://t.invalid/pixel', link: () => 'https://t.invalid/link' };
const tracked = (html: string) => prepareTracking(html, both)!(tracker);
const withoutPixel = (html: string) => html.replace(/<img src="https:[^>]*\/>/, '');

const link = 'href="https://app.invalid/reset"';
const optOuts: [string, string][] = table('compose/links-opted-out');

test('a link that opts out is left alone, and loses the attribute', (t) => {
  for (const [given, expected] of optOuts)
    t.is(withoutPixel(tracked(`${given}x</a>`)), `${expected}x</a>`, given);
});

test('a link with an attribute that says the opposite, or another, is tracked', (t) => {
  for (const attribute of ['clicktracking="on"', 'disable-tracking="false"', 'clicktracking'])
    t.is(withoutPixel(tracked(`<a ${attribute} ${link}>`)), '<a href="https://t.invalid/link">', attribute);
  const other = tracked(`<a data-pm-no-tracking title="clicktracking=off" ${link}>`);
  t.regex(other, /^<a data-pm-no-tracking title="clicktracking=off" href="https:\/\/t\.invalid\/link">/);
});

type Node = { nodeName: string; childNodes?: Node[]; attrs?: { name: string; value: string }[] };

/** Whether a reader that builds a tree gets to see the pixel: `content` of a template is not among its children. */
function hasPixel(node: Node): boolean {
  if (['select', 'noscript', 'svg', 'math', 'object', 'video'].includes(node.nodeName)) return false;
  if (node.nodeName === 'img' && node.attrs?.some(({ value }) => value === 'https://t.invalid/pixel'))
    return true;
  return node.childNodes?.some(hasPixel) ?? false;
}

const endings = column('compose/cut-html');

test('the pixel is put where it loads, however the HTML ends', (t) => {
  const begins = ['<!doctype html><html><head><title>T</title></head><body><p>Hello ', '<p>Hello ', 'Hello '];
  for (const begin of begins)
    for (const ending of endings) {
      const html = begin + ending;
      const result = prepareTracking(html, { opens: true, clicks: false })!(tracker);
      t.is(withoutPixel(result), html);
      t.true(hasPixel(parse(result, { scriptingEnabled: false }) as Node), result);
    }
});

test('the pixel of a mail with several HTML parts is in one that is shown', (t) => {
  const message = (...lines: string[]) => Buffer.from(`${lines.join('\r\n')}\r\n`);
  const html = (text: string) => ['Content-Type: text/html', '', text];
  const multipart = (type: string, boundary: string, ...parts: string[][]) => [
    `Content-Type: multipart/${type}; boundary="${boundary}"`,
    '',
    ...parts.flatMap((part) => [`--${boundary}`, ...part]),
    `--${boundary}--`,
  ];
  const pixels = (raw: Buffer) => {
    const texts: string[] = [];
    const bytes = trackedParts(raw, { ...both, trackers: [] }, { linksLeft: 9, isExceeded: false })!(tracker);
    editedParts(bytes, ({ html: text }) => {
      if (text.includes('/pixel')) texts.push(text.trim().slice(0, 3));
      return null;
    });
    return texts;
  };
  t.deepEqual(pixels(message(...multipart('mixed', 'b', html('one'), html('two')))), ['one']);
  t.deepEqual(pixels(message(...multipart('alternative', 'b', html('one'), html('two')))), ['two']);
  const related = multipart('related', 'r', html('two'), ['Content-Type: image/png', '', 'x']);
  const calendar = ['Content-Type: text/calendar', '', 'BEGIN:VCALENDAR'];
  const linked = `one <a ${link}>x</a>`;
  t.deepEqual(pixels(message(...multipart('alternative', 'b', html(linked), related, calendar))), ['two']);
});

test('every way in leaves such links alone, and puts the pixel before the comment that never ends', async (t) => {
  const world = await startSubmission(t);
  const [{ id }] = await world.db('domains').select('id');
  await setDomainTracking(world.db, id, { opens: true, clicks: true });
  const html = `<p>Hi <a href="https://app.invalid/tracked">in</a> ${optOuts.map(([given]) => `${given}x</a>`).join(' ')}</p><!-- cut`;
  const expected = `${optOuts.map(([, left]) => `${left}x</a>`).join(' ')}</p>`;
  for (const [way, send] of Object.entries(waysIn)) {
    const { status, text } = await send(world, { to: `${way}@there.invalid`, html });
    t.true(status < 300, `${way}: ${status} ${text}`);
    const { raw } = await messageTo(world, `${way}@there.invalid`);
    const got = partOf(raw, 'text/html').replaceAll('\r\n', '\n');
    t.regex(got, /<a href="[^"]+\/t\/c\/[^"]+">in<\/a>/, way);
    t.true(got.includes(expected), `${way}: ${got}`);
    t.regex(got, /<img src="[^"]+\/t\/o\/[^"]+"[^>]*><!-- cut/, way);
  }
});
