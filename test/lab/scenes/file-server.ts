/** A web server of files for attachments: notes every path that is asked for, and answers as it is told. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';

export async function startFileServer(
  t: ExecutionContext,
  answer: (path: string, response: ServerResponse) => unknown,
) {
  const asked: string[] = [];
  /** Requests whose connection is open and which are not answered yet. */
  const open = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    asked.push(request.url!);
    open.add(response);
    response.once('close', () => open.delete(response));
    answer(request.url!, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { asked, open, port, url: `http://files.invalid:${port}` };
}
