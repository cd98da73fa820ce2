/**
 * Content ids as applications have them, mostly file names, by every API: the mail arrives, signed, and the HTML shows each file
 * by an id that a message can carry (RFC 2392).
 */
import test from 'ava';
import PostalMime from 'postal-mime';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { costsAtMost } from '#lab/cost.ts';
import { areSigned } from '#lab/dkim.ts';
import { sendBy } from '#lab/scenes/ways-in.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { withSafeIds } from '#mail/compose/content-ids/content-ids.ts';
import { withReferences } from '#mail/compose/content-ids/references.ts';
import { escapeHtml } from '#platform/base/sanitize.ts';

const ids = [
  'logo',
  'logo a.png',
  'Größe.png',
  'a(1).png',
  'ii_k:0',
  'a@b@c',
  'R&D 1.png',
  '50% off.png',
  'a..b',
];
const from = 'app@sender.invalid';
const subject = 'Pictures';
const content = 'iVBORw0KGgo=';
const type = 'image/png';
const html = ids
  .flatMap((id) => [`<img src="cid:${escapeHtml(id)}">`, `<img src='CID:${encodeURIComponent(id)}'>`])
  .join('');

const sends: Record<string, (world: World, to: string) => Promise<{ status: number; text: string }>> = {
  api: (world, to) => {
    const attachments = ids.map((contentId) => ({ filename: 'x.png', content, contentId }));
    return sendBy.api(world, { from, to, subject, html, attachments });
  },
  resend: (world, to) => {
    const attachments = ids.map((content_id) => ({ filename: 'x.png', content, content_id }));
    return sendBy.resend(world, { from, to, subject, html, attachments });
  },
  postmark: (world, to) => {
    const named = (id: string, at: number) => (at % 2 === 0 ? id : `cid:${id}`);
    const file = { Name: 'x.png', Content: content, ContentType: type };
    const Attachments = ids.map((id, at) => ({ ...file, ContentID: named(id, at) }));
    return sendBy.postmark(world, { From: from, To: to, Subject: subject, HtmlBody: html, Attachments });
  },
  sendgrid: (world, to) =>
    sendBy.sendgrid(world, {
      personalizations: [{ to: [{ email: to }] }],
      from: { email: from },
      subject,
      content: [{ type: 'text/html', value: html }],
      attachments: ids.map((content_id) => ({
        content,
        filename: 'x.png',
        type,
        disposition: 'inline',
        content_id,
      })),
    }),
  mailgun: (world, to) => {
    const form = new FormData();
    for (const [name, value] of Object.entries({ from, to, subject, html })) form.append(name, value);
    for (const id of ids) form.append('inline', new Blob([Buffer.from(content, 'base64')], { type }), id);
    return sendBy.mailgun(world, form);
  },
};

test('the HTML shows each file by an id that a message can carry, by every API and in the preview', async (t) => {
  const world = await startWorld(t);
  const browser = createBrowser(world);
  await setUp(browser, world);
  const { id: orgId } = await world.db('organizations').first('id');
  for (const [way, send] of Object.entries(sends)) {
    const to = `${way}@there.invalid`;
    const { status, text } = await send(world, to);
    t.true(status < 300, `${way}: ${status} ${text}`);
    const find = () => world.mx[0]!.messages.find((one) => one.to[0] === to);
    await until(() => find() !== undefined);
    const read = await PostalMime.parse(find()!.raw);
    const given = read.attachments.map(({ contentId }) => contentId!.slice(1, -1));
    t.is(new Set(given).size, ids.length, way);
    t.is(given[0], 'logo');
    for (const one of given) t.regex(one, /^[\w.]+(@\w+)?$/, way);
    const shown = [...read.html!.matchAll(/cid:([^"']*)["']/gi)].map(([, one]) => one!);
    t.deepEqual(
      shown,
      given.flatMap((one) => [one, one]),
      way,
    );
    const { id } = await world.db('emails').orderBy('id', 'desc').first('id');
    const preview = await browser.get(`/dashboard/o/${orgId}/emails/${id}/preview`);
    t.is(preview.html.match(/src=["']data:image\/png;base64,iVBORw0KGgo=["']/g)?.length, 2 * ids.length, way);
  }
  await areSigned(t, world);
});

const file = (contentId: string) => ({ filename: 'x.png', content: Buffer.alloc(0), contentId });

test('references are found as HTML writes them; what refers to no file stays', (t) => {
  const files = ['a b', 'R&D 1', 'a(1)', 'ii:0', 'logo'].map(file);
  const { attachments } = withSafeIds({ attachments: files });
  const [ab, rd, a1, ii] = attachments.map(({ contentId }) => contentId!);
  const edited: [string, string][] = [
    ['<IMG SRC = " cid:a%20b ">', `<IMG SRC = "cid:${ab}">`],
    ['<td background="CID:R&amp;D%201">', `<td background="cid:${rd}">`],
    ['<img src="cid&#58;a b">', `<img src="cid:${ab}">`],
    ['<a href=cid:ii:0>', `<a href="cid:${ii}">`],
    ['<img srcset="cid:a%20b 1x, cid:a(1) 2x">', `<img srcset="cid:${ab} 1x, cid:${a1} 2x">`],
    ['<b style="x:url(&quot;cid:a b&quot;) url(cid:a(1))">', `<b style="x:url(cid:${ab}) url(cid:${a1})">`],
    [`<style>a{b:url('cid:a(1)')}</style>`, `<style>a{b:url(cid:${a1})}</style>`],
    [
      '<!--[if mso]><v:fill src="cid:a b"/><![endif]-->',
      `<!--[if mso]><v:fill src="cid:${ab}"/><![endif]-->`,
    ],
  ];
  const kept = [
    '<p>cid:a b</p>',
    '<img alt="cid:a b" src="cid:logo">',
    '<img src="cid:none x">',
    '<!-- <img src="cid:a b"> -->',
    '<script>"cid:a b"</script>',
  ];
  for (const [given, expected] of [...edited, ...kept.map((one) => [one, one] as const)]) {
    const { html, amp } = withSafeIds({ html: given, amp: given, attachments: files });
    t.deepEqual([html, amp], [expected, expected], given);
  }
});

test('two ids never become the same, even if one is what the other becomes', (t) => {
  const made = withSafeIds({ attachments: [file('a b')] }).attachments[0]!.contentId!;
  const [other, own] = withSafeIds({ attachments: [file('a b'), file(made)] }).attachments;
  t.is(own!.contentId, made);
  t.not(other!.contentId, made);
});

test('megabytes of HTML are read in linear time', async (t) => {
  const elements = [
    '<b>',
    '<i src=cid:a>',
    '<style></style>',
    '<style>url(cid:\\)',
    '<!--[if]>cid:',
    '<',
    'cid:',
  ];
  for (const element of elements)
    for (const before of ['cid:', 'cid:<b style="', '<style>url(cid:', '<img srcset="cid:']) {
      const text = before + element.repeat(400_000 / element.length);
      await costsAtMost(t, 350, () => withReferences(text, () => 'x'), before + element);
    }
});
