/** The limits of the HTTP server hold over TLS too, from the first packet of a connection. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import test from 'ava';
import { listen } from '#front/http/http-server.ts';
import { until } from '#lab/until.ts';
import { selfSigned } from '#operate/certificates/self-signed.ts';

const { cert, key } = selfSigned('x.invalid', Date.now());
const address = {
  httpHost: '127.0.0.1',
  httpPort: 0,
  httpProxies: [],
  httpKeepAlive: 5_000,
  tls: { cert, key },
};

test('over TLS, requests of one connection are handled one by one, and very many end it', async (t) => {
  const handled: string[] = [];
  let [running, most] = [0, 0];
  const server = await listen(async (request, response) => {
    running += 1;
    most = Math.max(most, running);
    handled.push(request.url!);
    await new Promise((done) => setTimeout(done, 20));
    running -= 1;
    response.end(`${request.url}\n`);
  }, address);
  t.teardown(server.close);
  const open = (count: number) => {
    const socket = connectTls({ port: server.port, host: '127.0.0.1', rejectUnauthorized: false });
    const it = Object.assign(
      socket.on('error', () => {}),
      { answer: '' },
    );
    it.setEncoding('utf8').on('data', (data) => (it.answer += data));
    it.write(Array.from({ length: count }, (_, n) => `GET /${n} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''));
    return it;
  };
  const few = open(10);
  await until(() => few.answer.includes('/9\n'));
  t.deepEqual(few.answer.match(/^\/\w+$/gm), handled);
  few.destroy();
  await once(open(1_000), 'close');
  t.is(most, 1);
  t.true(handled.length < 30);
});

test('a connection counts before its handshake, rubbish ends it, and a stop does not wait for one', async (t) => {
  const server = await listen(async (_, response) => void response.end('x'), address, {
    connections: 2,
    perNetwork: 1,
  });
  const sockets: Socket[] = [];
  const open = () => {
    const socket = connect(server.port, '127.0.0.1').on('error', () => {});
    sockets.push(socket);
    return socket;
  };
  const [silent, rubbish] = [open(), open()];
  await Promise.all([once(silent, 'connect'), once(rubbish, 'connect')]);
  await once(open(), 'close');
  rubbish.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  let said = '';
  rubbish.on('data', (data) => (said += data));
  await once(rubbish, 'close');
  t.false(said.includes('HTTP/1.1'), 'no answer in the clear');
  await server.close();
  await until(() => silent.destroyed);
  t.pass();
});

test('a new certificate is for connections to come; those that are open stay', async (t) => {
  const server = await listen(async (_, response) => void response.end('x'), address);
  t.teardown(server.close);
  const open = async () => {
    const socket = connectTls({ port: server.port, host: '127.0.0.1', rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    return socket;
  };
  const before = await open();
  const other = selfSigned('other.invalid', Date.now());
  server.useCertificate!({ cert: other.cert, key: other.key });
  const after = await open();
  t.deepEqual(
    [before, after].map((socket) => socket.getPeerCertificate().subject.CN),
    ['x.invalid', 'other.invalid'],
  );
  before.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  const [answer] = await once(before, 'data');
  t.regex(String(answer), /^HTTP\/1\.1 200/);
  before.destroy();
  after.destroy();
});
