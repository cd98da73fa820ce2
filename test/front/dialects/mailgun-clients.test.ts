/**
 * What Mailgun's SDKs in other languages put on the wire, replayed byte by byte (test/fixtures/calls). Python's calls were
 * recorded from the library that its SDK uses; the others are written as the sources of the SDK and its HTTP library do.
 */
import test from 'ava';
import PostalMime from 'postal-mime';
import { verifyDkim } from '#lab/dkim.ts';
import { type RecordedCall, recordedCalls } from '#lab/recorded-calls.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { table } from '#lab/table.ts';
import { until } from '#lab/until.ts';

const authorization = ({ key }: World) => `Basic ${Buffer.from(`api:${key}`).toString('base64')}`;

async function replay(world: World, { method, path, headers, body }: RecordedCall) {
  const response = await fetch(`${world.url()}/v3/sender.invalid/${path}`, {
    method,
    headers: [...headers, ['authorization', authorization(world)]],
    ...(method !== 'GET' && { body }),
  });
  return { status: response.status, text: await response.text() };
}

type Row = [client: string, to: string[], tags: object, files: string[]];

test('Mailgun: what the SDKs of PHP, Ruby, Python and Go and Symfony send arrives, signed', async (t) => {
  const world = await startWorld(t);
  const { messages } = world.mx[0]!;
  const calls = recordedCalls('mailgun');
  for (const [at, [client, to, tags, files]] of table<Row>('dialects/mailgun-clients').entries()) {
    messages.length = 0;
    t.is(calls[at]!.title, client);
    const { status, text } = await replay(world, calls[at]!);
    t.is(status, 200, `${client}: ${text}`);
    await until(async () => messages.length === to.length);
    t.deepEqual(messages.map((mail) => mail.to[0]!.split('@')[0]).sort(), to, client);
    const [{ tags: kept }] = await world.db('emails').orderBy('id', 'desc').limit(1);
    t.deepEqual(JSON.parse(kept), tags, client);
    const { raw } = messages[0]!;
    t.is((await verifyDkim(raw, world.dns))[0]!.result, 'pass', client);
    const { subject, attachments } = await PostalMime.parse(raw);
    t.is(subject, 'Hello');
    t.deepEqual(attachments.map(({ filename, mimeType }) => `${filename} ${mimeType}`).sort(), files);
  }
});

test('Mailgun: the lists of suppressions as the SDKs of PHP, Ruby, Python and Go write and read them', async (t) => {
  const world = await startWorld(t);
  const call = async (route: string) => {
    const [method, path] = route.split(' ') as [string, string];
    const { status, text } = await replay(world, { title: route, method, path, headers: [], body: '' });
    return { status, body: JSON.parse(text) };
  };
  const calls = recordedCalls('mailgun-suppressions');
  const removal = calls.pop()!;
  for (const one of calls) t.is((await replay(world, one)).status, 200, one.title);
  const first = (await call('GET bounces?limit=3')).body;
  t.is(first.items.length, 3);
  // Ruby's client reads the queries of both, and fails without them.
  for (const name of ['next', 'previous'])
    t.true(new URLSearchParams(new URL(first.paging[name]).search).has('address'), name);
  const { search } = new URL(first.paging.next);
  t.deepEqual(
    (await call(`GET bounces${search}`)).body.items.map((item: { address: string }) => item.address),
    ['python@there.invalid'],
  );
  const gone = await replay(world, removal);
  t.deepEqual(JSON.parse(gone.text), {
    message: 'Bounced address has been removed',
    address: 'php@there.invalid',
  });
  t.is((await call('DELETE bounces')).status, 405);
});
