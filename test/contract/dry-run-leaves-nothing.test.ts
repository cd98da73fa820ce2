/** docs/api.md section 4.1: `dryRun=true` answers as a send would, and does nothing else. */
import test from 'ava';
import { hasHeaders, isError, isInvalid, isSent, mailTo } from './answer.ts';
import { openTenant, people, sendPath, sharedWorld, someone, type Tenant } from './client.ts';

let tenant: Tenant;
const world = sharedWorld(async (made) => {
  tenant = await openTenant(made);
});

const plain = () => ({ from: 'App <app@sender.invalid>', to: someone(), subject: 'Hello', text: 'Hi' });
const dryRun = (own: Tenant, fields: object, query = 'dryRun=true') =>
  own.call('POST', `${sendPath}?${query}`, { body: { ...plain(), ...fields } });

/** The names of a message's headers, and its size. */
function shapeOf(raw: Buffer) {
  const head = raw.subarray(0, raw.indexOf('\r\n\r\n')).toString();
  return { size: raw.length, names: [...head.matchAll(/^([\w-]+):/gm)].map(([, name]) => name) };
}

test('the lists, the size and the headers are those of the mail that a send then makes, and nothing is left behind', async (t) => {
  const own = await openTenant(world(), { quota: 4 });
  const to = people(3);
  const [hidden, skipped, unpaid] = people(3);
  await own.suppress(skipped!);
  const fields = {
    to,
    bcc: [hidden, skipped, unpaid],
    subject: `Ünïcode ${'long '.repeat(40)}`,
    headers: { 'X-Campaign': 'spring' },
    attachments: [{ filename: 'a.bin', content: Buffer.alloc(300_000, 'a').toString('base64') }],
    idempotencyKey: 'once',
  };
  const before = await own.books();
  const tried = await dryRun(own, fields);
  t.is(tried.status, 200, JSON.stringify(tried.body));
  hasHeaders(t, tried);
  t.deepEqual(await own.books(), before);
  const { id, emailId, ...lists } = (await own.send(fields)).body;
  const { message, dryRun: said, id: wouldBe, emailId: noEmail, ...answer } = tried.body;
  t.true(said);
  t.deepEqual(answer, lists);
  const headers: { name: string; value: string }[] = message.headers;
  const names = headers.map(({ name }) => name);
  const sent = shapeOf((await mailTo(world(), to[0]!)).raw);
  t.deepEqual({ size: message.size, names }, sent);
  const header = (wanted: string) => headers.find(({ name }) => name === wanted)!.value;
  t.is(header('To'), to.join(', '));
  t.is(header('X-Campaign'), 'spring');
  t.is(header('Message-ID'), `<${wouldBe}>`);
  isError(t, await own.call('GET', `/api/public/email/${noEmail}`), '404 NOT_FOUND');
  t.false(JSON.stringify(message).includes(hidden!));
  const replay = await dryRun(own, fields);
  t.is(replay.headers.get('idempotent-replayed'), 'true', 'a send would be a replay now');
  t.like(replay.body, { id, emailId });
});

test('with tracking, the size is that of the first copy', async (t) => {
  const to = people(2);
  const html = `<p><a href="https://shop.invalid/">Shop</a>${'text '.repeat(2000)}</p>`;
  const fields = { to, html, tracking: { openTracking: true, clickTracking: true } };
  const { message } = (await dryRun(tenant, fields)).body;
  isSent(t, await tenant.send(fields), to);
  t.is(message.size, (await mailTo(world(), to[0]!)).raw.length);
});

test('what a send refuses, a dry run refuses', async (t) => {
  const own = await openTenant(world(), { quota: 0 });
  const gone = someone();
  await own.suppress(gone);
  isInvalid(t, await dryRun(own, { subject: '' }), ['subject']);
  isError(t, await dryRun(own, { from: 'app@elsewhere.invalid' }), '403 DOMAIN_NOT_FOUND');
  isError(t, await dryRun(own, { to: gone }), '422 ALL_RECIPIENTS_SUPPRESSED');
  isError(t, await dryRun(own, {}), '402 INSUFFICIENT_CREDITS');
  isInvalid(t, await dryRun(own, { scheduledAt: '2020-01-01T00:00:00Z' }), ['scheduledAt']);
  const broken = await openTenant(world(), { quota: 1, domain: { dkim_private_key: 'broken' } });
  isError(t, await dryRun(broken, {}), '500 SEND_FAILED');
  await broken.suppress(gone);
  isError(t, await dryRun(broken, { to: gone }), '422 ALL_RECIPIENTS_SUPPRESSED');
});

test('a dry run counts as a request; one beyond the recipients of the day does not', async (t) => {
  const own = await openTenant(world(), { limits: { requestsPerDay: 3, emailsPerDay: 2 } });
  t.is((await dryRun(own, {})).status, 200);
  t.is((await dryRun(own, {})).status, 200);
  isError(t, await dryRun(own, { to: people(3) }), '429 RATE_LIMIT_EXCEEDED');
  t.is((await dryRun(own, {})).status, 200);
  isError(t, await dryRun(own, {}), '429 RATE_LIMIT_EXCEEDED');
  t.is((await own.books()).emails, 0);
});

test('a dry run that is asked for in the wrong words is refused, because it would send', async (t) => {
  const own = await openTenant(world());
  for (const query of ['dryrun=true', 'dry_run=true', 'Dry-Run=1', 'dryRuns=true'])
    isInvalid(t, await dryRun(own, {}, query), [query.split('=')[0]!], query);
  for (const query of ['dryRun=1', 'dryRun=', 'dryRun', 'dryRun=TRUE', 'dryRun=true&dryRun=TRUE'])
    isInvalid(t, await dryRun(own, {}, query), ['dryRun'], query);
  t.is((await own.books()).emails, 0);
  isSent(t, await dryRun(own, {}, 'dryRun=false&source=shop'));
});
