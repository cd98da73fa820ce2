/**
 * Tracking without a server: HTML rewritten, links signed and read, visitors told apart. Each case of the rewriter is
 * a pair in fixtures/tracking: NAME.html and NAME.expected.html; a new case is a new pair. UPDATE_GOLDEN=1 writes the
 * expected ones anew: read the diff.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import fc from 'fast-check';
import { type Token, type TokenHandler, Tokenizer, TokenizerMode } from 'parse5';
import { costsAtMost } from '#lab/cost.ts';
import { runs } from '#lab/runs.ts';
import { column, table } from '#lab/table.ts';
import { eachTag } from '#mail/compose/html-tags.ts';
import {
  linkLimitIfExceeded,
  newAllowance,
  prepareTracking,
  type Tracker,
} from '#mail/compose/tracking/html-tracking.ts';
import { createTrackingLinks } from '#mail/record/tracking/tracking-links.ts';
import { recordVisit, type Visit, type Visited } from '#mail/record/visit.ts';
import { type Visitor, visitorKind } from '#mail/record/visitor.ts';
import { fixedSecrets } from '#platform/base/secrets.ts';

const folder = join(import.meta.dirname, '../../../fixtures/tracking');
const cases = readdirSync(folder).flatMap((file) => /^([\w-]+)\.html$/.exec(file)?.[1] ?? []);
const read = (file: string) => readFileSync(join(folder, file), 'utf8');

const plain: Tracker = {
  pixel: () => 'https://t.invalid/o?a=1&b=2',
  link: (target) => `https://t.invalid/c?a=1&to=${encodeURIComponent(target)}`,
};
const both = { opens: true, clicks: true };

for (const name of cases) {
  test(`rewritten: ${name}`, (t) => {
    const tracked = prepareTracking(read(`${name}.html`), both)!(plain);
    if (process.env.UPDATE_GOLDEN) writeFileSync(join(folder, `${name}.expected.html`), tracked);
    t.is(tracked, read(`${name}.expected.html`));
  });
}

test('opens alone leave the links, clicks alone put in no pixel, and nothing to track is the same mail for all', (t) => {
  const html = read('document.html');
  const opens = prepareTracking(html, { opens: true, clicks: false })!(plain);
  t.is(opens.replace(/<img src="https:\/\/t\.invalid[^>]*>/, ''), html);
  const clicks = prepareTracking(html, { opens: false, clicks: true })!(plain);
  t.notRegex(clicks, /t\.invalid\/o/);
  t.is(prepareTracking(html, { opens: false, clicks: false }), null);
  t.is(prepareTracking(read('no-links.html'), { opens: false, clicks: true }), null);
});

test('a link too long for a request line stays as it is', (t) => {
  const link = (length: number) => `<a href="${'https://app.invalid/'.padEnd(length, 'x')}">`;
  t.not(prepareTracking(link(5000), { opens: false, clicks: true }), null);
  t.is(prepareTracking(link(5001), { opens: false, clicks: true }), null);
});

test('of one mail a thousand links are tracked, over all its parts', (t) => {
  const linked = (count: number) => '<a href="https://app.invalid/">x</a>'.repeat(count);
  const clicks = { opens: false, clicks: true };
  const trackedIn = (html: string) => html.split('t.invalid/c').length - 1;
  const allowance = newAllowance();
  t.is(trackedIn(prepareTracking(linked(600), clicks, allowance)!(plain)), 600);
  t.is(linkLimitIfExceeded(allowance), null);
  const rest = prepareTracking(`${linked(401)}<p>more</p>${linked(3)}</body>`, both, allowance)!(plain);
  t.is(trackedIn(rest), 400);
  t.is(linkLimitIfExceeded(allowance), 1000);
  t.true(
    rest.includes(`${linked(1)}<p>more</p>${linked(3)}<img src=`),
    'what is left stays, and the pixel has its place',
  );
  t.is(prepareTracking(linked(1), clicks, allowance), null);
  const exactly = newAllowance();
  prepareTracking(linked(1000), clicks, exactly);
  t.is(linkLimitIfExceeded(exactly), null);
});

const pieces = column('compose/html-pieces');

/** Whether `parts` are in the text in their order, from its first character to its last. */
function isMadeOf(text: string, parts: string[]): boolean {
  let at = 0;
  for (const [index, part] of parts.entries()) {
    const found = text.indexOf(part, at);
    if (found < 0 || (index === 0 && found > 0)) return false;
    at = found + part.length;
  }
  return text.endsWith(parts.at(-1)!);
}

test('whatever the HTML is, what is around the links stays to the character', (t) => {
  const html = fc.array(fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...pieces) }, fc.string()), {
    maxLength: 40,
  });
  let replaced = 0;
  const property = fc.property(html, (parts) => {
    const text = parts.join('');
    const tracked = prepareTracking(text, both)!({ pixel: () => 'PIXEL', link: () => 'LINK' });
    const around = tracked.replace(/<img src="PIXEL"[^>]*>/, '').split(/"LINK"|'LINK'/);
    replaced += around.length - 1;
    return isMadeOf(text, around);
  });
  fc.assert(property, { numRuns: runs(5000) });
  t.true(replaced > runs(5000) / 50, `${replaced} links`);
});

const names = new Set(['a', 'area', 'body']);
const rawText: Record<string, Tokenizer['state']> = {
  title: TokenizerMode.RCDATA,
  textarea: TokenizerMode.RCDATA,
  style: TokenizerMode.RAWTEXT,
  script: TokenizerMode.SCRIPT_DATA,
};

/** The tags of these names as the tokenizer sees them that reads all of the HTML. */
function seenByTokenizer(html: string): string[] {
  const seen: string[] = [];
  const start = ({ tagName, attrs, location }: Token.TagToken) => {
    const state = rawText[tagName];
    if (state !== undefined) tokenizer.state = state;
    if (!names.has(tagName)) return;
    const href = attrs.find(({ name }) => name === 'href');
    const range = href && location!.attrs!.href!;
    seen.push([tagName, href?.value, range?.startOffset, range?.endOffset].join(' '));
  };
  const end = ({ tagName, location }: Token.TagToken) => {
    if (names.has(tagName)) seen.push(`/${tagName} ${location!.startOffset}`);
  };
  const others = [
    'onComment',
    'onDoctype',
    'onCharacter',
    'onNullCharacter',
    'onWhitespaceCharacter',
    'onEof',
  ];
  const ignored = Object.fromEntries(others.map((name) => [name, () => {}]));
  const handler = { ...ignored, onStartTag: start, onEndTag: end } as unknown as TokenHandler;
  const tokenizer = new Tokenizer({ sourceCodeLocationInfo: true }, handler);
  tokenizer.write(html, true);
  return seen;
}

function seenByUs(html: string): string[] {
  const seen: string[] = [];
  eachTag(html, (name) => names.has(name), {
    onStart({ name, value, range }) {
      const href = value('href');
      const { start, end } = href === undefined ? {} : range('href');
      if (names.has(name)) seen.push([name, href, start, end].join(' '));
    },
    onEnd(name, at) {
      if (names.has(name)) seen.push(`/${name} ${at}`);
    },
  });
  return seen;
}

test('tags that nobody asks for are passed over without another being missed or made up', (t) => {
  const tags = [
    '<p class="a>b">',
    "<td width=1 title='<a href=x>'>",
    '<b/>',
    '<p a="1"b>',
    '<i a = "x">',
    '<o:p x>',
    '</p >',
  ];
  const words = [
    ...pieces,
    ...tags,
    '<!',
    '<?',
    '--',
    '<!-',
    '<p "',
    '<TITLE>',
    '<a\fhref=x>',
    '<p x=">',
    '<!doctype ',
  ];
  const html = fc.array(fc.constantFrom(...words), { maxLength: 30 }).map((parts) => parts.join(''));
  const property = fc.property(html, (text) => t.deepEqual(seenByUs(text), seenByTokenizer(text)));
  fc.assert(property, { numRuns: runs(5000) });
  for (const name of cases)
    t.deepEqual(seenByUs(read(`${name}.html`)), seenByTokenizer(read(`${name}.html`)));
});

test('HTML made to cost is read in linear time', async (t) => {
  const fill = (text: string) => text.repeat(Math.floor((2 * 1024 * 1024) / text.length));
  const formats = Array.from({ length: 500 }, (_, n) => `<b x=${n}>`).join('');
  const hostile = [`<p>${formats}${'</p><p>x'.repeat(50_000)}`, fill('<div>'), fill('<a href="'), fill('<')];
  hostile.push(`<a href="https://x${' '.repeat(2_000_000)}x">`);
  for (const html of hostile)
    await costsAtMost(t, 5_000, () => prepareTracking(html, both)!(plain), html.slice(0, 20));
});

const deliveryId = '0199a1b2-c3d4-7e5f-8a6b-0123456789ab';
const orgId = '0199a1b2-0000-7e5f-8a6b-0123456789ab';
const secret = 'a secret of enough characters';
const links = createTrackingLinks(fixedSecrets(secret));
const base = 'https://mail.invalid/postern';
const tokenOf = (url: string) => url.slice(url.lastIndexOf('/') + 1);

test('a token says which email, recipient and link it was made of', (t) => {
  const tracker = links.tracker(base, orgId, deliveryId);
  const target = 'https://app.invalid/grüße?a=1&b=%20#there';
  t.true(tracker.pixel().startsWith(`${base}/t/o/`));
  t.true(tracker.link(target).startsWith(`${base}/t/c/`));
  t.deepEqual(links.read('open', tokenOf(tracker.pixel())), { deliveryId, target: '' });
  t.deepEqual(links.read('click', tokenOf(tracker.link(target))), { deliveryId, target });
  t.is(links.read('open', tokenOf(tracker.link(target))), null, 'a click is no open');
  t.is(links.read('click', tokenOf(tracker.pixel())), null);
  t.is(
    tracker.link(target),
    createTrackingLinks(fixedSecrets(secret)).tracker(base, orgId, deliveryId).link(target),
    'nothing is kept',
  );
});

test('a link is of a host and of an organization; one of version 2, of a host', (t) => {
  const token = tokenOf(links.tracker(base, orgId, deliveryId).link('https://app.invalid/'));
  t.true(links.isFor('mail.invalid', ['x', orgId], token));
  t.false(links.isFor('mail.invalid', ['x'], token));
  t.false(links.isFor('other.invalid', [orgId], token));
  const earlier = 'As8BAZmhssPUfl-KawEjRWeJq7KgrqCAVNMJaHR0cHM6Ly9hcHAuaW52YWxpZC-F1WZtf4FZ-sgjdDGDQ9XQ';
  t.deepEqual(links.read('click', earlier), { deliveryId, target: 'https://app.invalid/' });
  t.true(links.isFor('mail.invalid', ['x'], earlier));
  t.false(links.isFor('other.invalid', ['x'], earlier));
});

test('no character of a token can be another, missing, or one more', (t) => {
  const token = tokenOf(links.tracker(base, orgId, deliveryId).link('https://app.invalid/'));
  for (let at = 0; at < token.length; at++) {
    for (const other of 'Aa0-_B9z%.=')
      if (token[at] !== other)
        t.is(links.read('click', token.slice(0, at) + other + token.slice(at + 1)), null, `${at} ${other}`);
    t.is(links.read('click', token.slice(0, at)), null);
    t.is(links.read('click', token.slice(0, at) + token.slice(at + 1)), null);
  }
  const more = ['A', '=', ' ', '\n', '\0', '.'].flatMap((extra) => [token + extra, extra + token]);
  for (const altered of [...more, '', token.repeat(2)]) t.is(links.read('click', altered), null);
});

test('every bit of a token’s bytes counts', (t) => {
  const bytes = Buffer.from(
    tokenOf(links.tracker(base, orgId, deliveryId).link('https://app.invalid/')),
    'base64url',
  );
  for (let bit = 0; bit < bytes.length * 8; bit++) {
    const altered = Buffer.from(bytes);
    altered[bit >> 3]! ^= 1 << (bit & 7);
    t.is(links.read('click', altered.toString('base64url')), null);
  }
});

test('another secret’s links are not ours; an earlier secret’s are, where it is given', (t) => {
  const earlier = createTrackingLinks(fixedSecrets('the secret of last year'));
  const token = tokenOf(earlier.tracker(base, orgId, deliveryId).pixel());
  t.is(links.read('open', token), null);
  const rotated = createTrackingLinks(fixedSecrets(secret, 'the secret of last year'));
  t.deepEqual(rotated.read('open', token), { deliveryId, target: '' });
  t.is(
    rotated.tracker(base, orgId, deliveryId).pixel(),
    links.tracker(base, orgId, deliveryId).pixel(),
    'the first signs',
  );
});

test('not even a link of our own leads to anything but http and https', (t) => {
  const { link } = links.tracker(base, orgId, deliveryId);
  for (const target of ['javascript:alert(1)', 'data:text/html,x', '//evil.invalid', '/path', '', 'https://'])
    t.is(links.read('click', tokenOf(link(target))), null, target);
});

const chrome =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36';
const visitors: [kind: string, facts: Partial<Visitor>][] = table('tracking/visitors');

test('people, proxies and scanners are told apart', (t) => {
  const fallback: Visitor = {
    event: 'open',
    method: 'GET',
    userAgent: chrome,
    purpose: '',
    sinceDelivery: null,
    wasOpened: false,
  };
  for (const [kind, facts] of visitors)
    t.is(visitorKind({ ...fallback, ...facts }), kind as never, JSON.stringify(facts));
});

const none = { count: 0, firstAt: null, lastAt: null, scans: 0 };
const visit: Visit = {
  deliveryId,
  event: 'open',
  at: 5000,
  method: 'GET',
  userAgent: chrome,
  purpose: '',
  ip: '192.0.2.1',
  url: null,
};

test('opens and clicks of people are counted apart from those of machines, and make a hundred events each at most', (t) => {
  let books: Visited = { isSending: false, deliveredAt: 1000, open: none, click: none };
  let events = 0;
  const record = (more: Partial<Visit>) => {
    const { after, event } = recordVisit(books, { ...visit, ...more });
    books = after;
    if (event) events += 1;
    return event;
  };
  t.deepEqual(record({}), { first: true, kind: 'human', userAgent: chrome, ip: '192.0.2.1' });
  t.is(record({ method: 'HEAD', at: 9000 })?.kind, 'scanner');
  t.false('first' in record({ at: 4000 })!);
  t.deepEqual(books.open, { count: 2, firstAt: 4000, lastAt: 5000, scans: 1 });
  for (let n = 0; n < 150; n++) record({ at: 6000 + n });
  t.like(books.open, { count: 152, scans: 1, lastAt: 6149 });
  t.is(events, 101);
  t.is(record({ method: 'HEAD' })?.kind, 'scanner', 'people leave room for machines');
  t.deepEqual(books.click, none);
  t.like(record({ event: 'click', url: 'https://app.invalid/' }), { url: 'https://app.invalid/' });
});
