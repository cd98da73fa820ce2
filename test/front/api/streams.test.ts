/** Live streams and a client that does not read: how much is kept for it, and for how long, over real sockets. */
import { once } from 'node:events';
import { createServer, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import Koa from 'koa';
import { createCursors } from '#front/api/events/event-cursor.ts';
import { createStreams } from '#front/api/events/event-stream.ts';
import { manualClock } from '#lab/clock.ts';
import { until } from '#lab/until.ts';
import { createEventSignal } from '#mail/record/event-signal.ts';
import type { EventQuery } from '#mail/record/rows/read-events.ts';
import { newId } from '#platform/base/id.ts';
import { fixedSecrets } from '#platform/base/secrets.ts';

const pageOfBytes = 1_000_000;

/** Returns a page for each read, and counts the reads of each organization's stream. */
async function endless(t: ExecutionContext, timeoutMs: number) {
  const pages: Record<string, number> = {};
  const onError = (what: string, error: unknown) => t.fail(`${what}: ${error}`);
  const watch = createEventSignal({
    changeToken: async () => '',
    position: async () => 0,
    settlesLate: false,
    notifyOthers() {},
    clock: manualClock(),
    onError,
  });
  const streams = createStreams({
    async readEvents({ orgId, after }: EventQuery) {
      pages[orgId!] = (pages[orgId!] ?? 0) + 1;
      const event = { id: newId(), orgId: orgId!, type: 'credits.low', at: 0, recipient: null, email: null };
      const data = { text: 'x'.repeat(pageOfBytes) };
      return { events: [{ ...event, position: after + 1, data }], position: after + 1, isMore: true };
    },
    settledPosition: async () => 0,
    cursors: createCursors(fixedSecrets('a secret')),
    eventSignal: watch,
    onError,
    timeoutMs,
  });
  const app = new Koa();
  app.silent = true;
  app.use((context) => {
    streams.open(context, {
      orgId: context.path.slice(1),
      after: null,
      limit: 1,
      isStillAllowed: async () => true,
    });
  });
  const server = createServer(app.callback()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(async () => {
    await streams.close();
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const connect = async (orgId: string) => {
    const request = get(`http://127.0.0.1:${port}/${orgId}`);
    request.on('error', () => {});
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.on('error', () => {});
    t.teardown(() => response.destroy());
    return response;
  };
  const connections = promisify(server.getConnections.bind(server));
  return { pages, connect, connections, streams };
}

test('for a client that does not read, no more events are read than fit the socket buffers', async (t) => {
  const { pages, connect } = await endless(t, 60_000);
  (await connect('deaf')).pause();
  let bytes = 0;
  (await connect('eager')).on('data', (chunk) => {
    bytes += chunk.length;
  });
  await until(() => bytes > 100 * pageOfBytes, { what: () => `${bytes} bytes` });
  t.true(pages.eager! >= 100);
  t.true(pages.deaf! <= 20, `${pages.deaf} pages`);
});

test('a client that reads nothing for too long is disconnected; one that reads is not', async (t) => {
  const { connect, connections, streams } = await endless(t, 2000);
  const eager = await connect('eager');
  let isGone = false;
  eager.on('close', () => {
    isGone = true;
  });
  eager.resume();
  const deaf = await connect('deaf');
  deaf.pause();
  // The server lets it go; what was under way is still in the sockets, and has to be taken before the end is seen.
  t.is(await connections(), 2);
  await until(async () => (await connections()) === 1);
  deaf.resume();
  await until(() => deaf.destroyed, { what: 'the deaf to see its end' });
  t.false(isGone);
  await streams.close();
  await until(() => isGone, { what: 'the eager to see its end' });
});
