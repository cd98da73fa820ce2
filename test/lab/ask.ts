/** One HTTP request of an attacker: any body, from any loopback address, its connection closed after the answer. */
import http from 'node:http';

export interface Question {
  method?: string;
  headers?: http.OutgoingHttpHeaders;
  /** In pieces, so that a large one is not copied. */
  body?: (Buffer | string)[];
  /** The loopback address that it comes from. */
  from?: string;
  timeoutMs?: number;
}

export interface Reply {
  /** 0: no answer came; `text` says why. A server that refuses a body may close before its answer is read. */
  status: number;
  isOverdue: boolean;
  headers: http.IncomingHttpHeaders;
  /** Of the body. */
  bytes: number;
  /** The beginning of the body. */
  text: string;
  ms: number;
}

const keptBytes = 64 * 1024;

export function ask(url: string, { method = 'GET', headers = {}, body = [], ...rest }: Question = {}) {
  const { from = '127.0.0.1', timeoutMs = 300_000 } = rest;
  const begun = performance.now();
  return new Promise<Reply>((resolve) => {
    const reply: Reply = { status: 0, isOverdue: false, headers: {}, bytes: 0, text: '', ms: 0 };
    const request = http.request(url, { method, headers, localAddress: from, agent: false });
    const done = (why: string) => {
      clearTimeout(overdue);
      if (reply.status === 0) reply.text = why;
      resolve({ ...reply, ms: performance.now() - begun });
      request.destroy();
    };
    const overdue = setTimeout(() => {
      reply.status = 0;
      reply.isOverdue = true;
      done(`no answer within ${timeoutMs / 1000} s`);
    }, timeoutMs);
    request.on('response', (response) => {
      reply.status = response.statusCode!;
      reply.headers = response.headers;
      response.on('data', (chunk: Buffer) => {
        reply.bytes += chunk.length;
        if (reply.text.length < keptBytes) reply.text += chunk.toString('latin1');
      });
      response.on('error', () => {});
      response.on('close', () => done(''));
    });
    // A server that refuses a body without reading it closes the connection: its answer may be there all the same.
    request.on('error', (error) => setTimeout(() => done(error.message), reply.status === 0 ? 100 : 1000));
    for (const piece of body) request.write(piece);
    request.end();
  });
}

/** The headers of a call of the API. The length, if given, is announced. */
export function withKey(key: string, body: (Buffer | string)[] = [], type = 'application/json') {
  const length = body.reduce((sum, piece) => sum + Buffer.byteLength(piece), 0);
  return { authorization: `Bearer ${key}`, 'content-type': type, 'content-length': length };
}

/** A call of the API with a small JSON body. */
export function callJson(url: string, key: string, method: string, document?: object, timeoutMs?: number) {
  const body = document === undefined ? [] : [JSON.stringify(document)];
  return ask(url, { method, body, headers: withKey(key, body), timeoutMs });
}
