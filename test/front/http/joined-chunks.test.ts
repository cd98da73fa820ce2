import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { chunksOf, joinChunks } from '#front/http/joined-chunks.ts';
import { until } from '#lab/until.ts';

/** A request whose body is `chunks` chunks of one byte, as the server sees it. */
async function receive(t: ExecutionContext, chunks: number): Promise<IncomingMessage> {
  const { promise, resolve } = Promise.withResolvers<IncomingMessage>();
  const server = createServer((request) => {
    joinChunks(request);
    resolve(request);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  t.teardown(() => {
    socket.destroy();
    server.close();
  });
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
  socket.write(`${'1\r\na\r\n'.repeat(chunks)}0\r\n\r\n`);
  return promise;
}

test('chunks of one byte reach the reader as pieces of a usual size, and their number is known', async (t) => {
  const request = await receive(t, 100_000);
  let [pieces, bytes] = [0, 0];
  for await (const piece of request) {
    pieces += 1;
    bytes += piece.length;
  }
  t.is(bytes, 100_000);
  t.true(pieces < 100, `${pieces} pieces`);
  t.is(chunksOf(request), 100_000);
});

test('a body that nobody reads yet is not read from the socket either, and arrives whole later', async (t) => {
  const request = await receive(t, 1_000_000);
  await until(() => request.readableLength > 0);
  for (let turns = 0; turns < 100; turns += 1) await setImmediate();
  const { bytesRead } = request.socket;
  t.true(bytesRead < 1_000_000, `${bytesRead} of 6,000,000 bytes were read`);
  let bytes = 0;
  for await (const piece of request) bytes += piece.length;
  t.is(bytes, 1_000_000);
});
