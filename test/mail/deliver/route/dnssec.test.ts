/** The secure resolver against a DNS that vouches for some names, and against servers that lie or say nothing. */
import dgram from 'node:dgram';
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { decode, encode, type Packet } from 'dns-packet';
import { startDns, type Zone } from '#lab/dns/dns.ts';
import { createSecureResolve } from '#mail/deliver/route/dnssec.ts';

const patience = { timeoutMs: 300_000, tries: 2 };
/** For a server that does not answer. */
const haste = { timeoutMs: 1000, tries: 2 };

async function start(t: ExecutionContext, zone: Zone) {
  const dns = await startDns(zone);
  t.teardown(dns.close);
  return { dns, resolve: createSecureResolve([dns.address], patience)! };
}

test('records come with the word whether they are secure', async (t) => {
  const { resolve } = await start(t, {
    'signed.invalid': { MX: ['10 mx.signed.invalid'], A: ['127.0.0.2'], secure: true },
    'plain.invalid': { MX: ['10 mx.plain.invalid'] },
    '_25._tcp.mx.signed.invalid': { TLSA: ['3 1 1 00ff'], secure: true },
  });
  t.deepEqual(await resolve('signed.invalid', 'MX'), {
    records: [{ preference: 10, exchange: 'mx.signed.invalid' }],
    secure: true,
    owner: 'signed.invalid',
  });
  t.false((await resolve('plain.invalid', 'MX')).secure);
  t.deepEqual((await resolve('signed.invalid', 'A')).records, ['127.0.0.2']);
  const { records } = await resolve('_25._tcp.mx.signed.invalid', 'TLSA');
  t.like(records[0], { usage: 3, selector: 1, matchingType: 1, certificate: Buffer.from([0x00, 0xff]) });
});

test('that there is nothing is an answer too, secure or not', async (t) => {
  const { resolve } = await start(t, {
    'signed.invalid': { A: ['127.0.0.2'], secure: true },
    'plain.invalid': { A: ['127.0.0.2'] },
  });
  for (const [name, secure] of [
    ['signed.invalid', true],
    ['nobody.signed.invalid', true],
    ['plain.invalid', false],
    ['nobody.invalid', false],
  ] as const) {
    t.like(await resolve(name, 'MX'), { records: [], secure }, name);
  }
});

test('an alias is followed; one insecure step makes the answer insecure', async (t) => {
  const { resolve } = await start(t, {
    'alias.invalid': { CNAME: ['host.invalid'], secure: true },
    'host.invalid': { A: ['127.0.0.2'], secure: true },
    'away.invalid': { CNAME: ['plain.invalid'], secure: true },
    'plain.invalid': { A: ['127.0.0.3'] },
  });
  t.deepEqual(await resolve('Alias.invalid', 'A'), {
    records: ['127.0.0.2'],
    secure: true,
    owner: 'host.invalid',
  });
  t.like(await resolve('away.invalid', 'A'), {
    records: ['127.0.0.3'],
    secure: false,
    owner: 'plain.invalid',
  });
  t.like(await resolve('away.invalid', 'CNAME'), { records: ['plain.invalid'], secure: true });
});

test('what is too large for UDP comes by TCP', async (t) => {
  const records = Array.from({ length: 40 }, (_, n) => `3 1 1 ${n.toString(16).padStart(64, '0')}`);
  const { dns, resolve } = await start(t, { '_25._tcp.mx.invalid': { TLSA: records, secure: true } });
  const answer = await resolve('_25._tcp.mx.invalid', 'TLSA');
  t.is(answer.records.length, 40);
  t.true(answer.secure);
  t.is(dns.queries.length, 2);
});

test('SERVFAIL, REFUSED and silence are not known, and said so', async (t) => {
  const { dns, resolve } = await start(t, {
    'bogus.invalid': 'SERVFAIL',
    'refused.invalid': 'REFUSED',
    'silent.invalid': 'TIMEOUT',
  });
  const message = (trouble: string) => ({ message: new RegExp(`MX: the DNS server 127.0.0.1 ${trouble}$`) });
  await t.throwsAsync(resolve('bogus.invalid', 'MX'), message('answered SERVFAIL'));
  await t.throwsAsync(resolve('refused.invalid', 'MX'), message('answered REFUSED'));
  t.is(dns.queries.length, 2, 'a server that has answered is not asked again');
  const hasty = createSecureResolve([dns.address], haste)!;
  await t.throwsAsync(hasty('silent.invalid', 'MX'), message('did not answer'));
  t.is(dns.queries.length, 4, 'a silent one is');
});

test('a server that fails or is not there is followed by the next', async (t) => {
  const failing = await startDns({ 'a.invalid': 'SERVFAIL' });
  t.teardown(failing.close);
  const { dns } = await start(t, { 'a.invalid': { A: ['127.0.0.2'], secure: true } });
  const nobody = await freeUdpPort();
  const resolve = createSecureResolve([failing.address, `127.0.0.1:${nobody}`, dns.address], patience)!;
  t.like(await resolve('a.invalid', 'A'), { records: ['127.0.0.2'], secure: true });
});

async function freeUdpPort(): Promise<number> {
  const socket = dgram.createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address();
  socket.close();
  return port;
}

/** A server that answers each query with the packets that `answer` makes of it. */
async function startLiar(t: ExecutionContext, answer: (query: Packet) => (Packet | Buffer)[]) {
  const socket = dgram.createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  t.teardown(() => void socket.close());
  socket.on('message', (packet, from) => {
    for (const one of answer(decode(packet))) {
      socket.send(Buffer.isBuffer(one) ? one : encode(one), from.port, from.address);
    }
  });
  return createSecureResolve([`127.0.0.1:${(socket.address() as AddressInfo).port}`], patience)!;
}

const adBit = 1 << 5;

const response = (query: Packet, address: string): Packet => ({
  type: 'response',
  id: query.id!,
  flags: adBit,
  questions: query.questions!,
  answers: [{ type: 'A', name: query.questions![0]!.name, ttl: 0, data: address }],
});

test('a packet that is no response to the question is not heeded', async (t) => {
  const resolve = await startLiar(t, (query) => {
    const forged = response(query, '127.6.6.6');
    return [
      Buffer.from('garbage'),
      Buffer.alloc(0),
      { ...forged, type: 'query' },
      { ...forged, id: (query.id! + 1) % 0x10000 },
      { ...forged, questions: [{ type: 'A', name: 'other.invalid' }] },
      { ...forged, questions: [{ type: 'MX', name: query.questions![0]!.name }] },
      { ...forged, questions: [] },
      response(query, '127.0.0.2'),
    ];
  });
  t.deepEqual((await resolve('a.invalid', 'A')).records, ['127.0.0.2']);
});

/** By UDP it says no more than to come by TCP, where `answer` has the connection to itself. */
async function startTruncating(
  t: ExecutionContext,
  answer: (socket: net.Socket, response: Buffer) => void,
  timing = patience,
) {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const truncated = 1 << 9;
  const socket = dgram.createSocket('udp4').bind(port, '127.0.0.1');
  await once(socket, 'listening');
  t.teardown(() => void socket.close());
  socket.on('message', (packet, from) => {
    const query = decode(packet);
    socket.send(encode({ ...response(query, ''), flags: truncated, answers: [] }), from.port, from.address);
  });
  server.on('connection', (connection) => {
    connection.on('error', () => {});
    connection.once('data', (packet) => {
      const bytes = encode(response(decode(packet.subarray(2)), '127.0.0.2'));
      const length = Buffer.from([bytes.length >> 8, bytes.length & 255]);
      answer(connection, Buffer.concat([length, bytes]));
    });
  });
  return createSecureResolve([`127.0.0.1:${port}`], timing)!;
}

test('an answer over TCP may come in pieces', async (t) => {
  const resolve = await startTruncating(t, (socket, bytes) => {
    socket.setNoDelay(true).write(bytes.subarray(0, 1));
    setImmediate(() => socket.write(bytes.subarray(1, 9), () => socket.write(bytes.subarray(9))));
  });
  t.like(await resolve('a.invalid', 'A'), { records: ['127.0.0.2'], secure: true });
});

const broken: [what: string, answer: (socket: net.Socket, bytes: Buffer) => void, message: RegExp][] = [
  ['closed', (socket) => socket.end(), /closed the connection$/],
  ['closed in the middle', (socket, bytes) => socket.end(bytes.subarray(0, 9)), /closed the connection$/],
  ['never answered', () => {}, /did not answer over TCP$/],
  ['answered with rubbish', (socket) => socket.write('\0\x03abc'), /answered something else over TCP$/],
];

for (const [what, answer, message] of broken) {
  test(`a TCP connection that is ${what} is no answer`, async (t) => {
    const timing = what === 'never answered' ? haste : patience;
    const resolve = await startTruncating(t, answer, timing);
    await t.throwsAsync(resolve('a.invalid', 'A'), { message });
  });
}

test('a packet from another port than the server is not heeded', async (t) => {
  const stranger = dgram.createSocket('udp4').bind(0, '127.0.0.1');
  await once(stranger, 'listening');
  t.teardown(() => void stranger.close());
  const server = dgram.createSocket('udp4').bind(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => void server.close());
  server.on('message', (packet, from) => {
    const query = decode(packet);
    stranger.send(encode(response(query, '127.6.6.6')), from.port, from.address, () =>
      server.send(encode(response(query, '127.0.0.2')), from.port, from.address),
    );
  });
  const resolve = createSecureResolve([`127.0.0.1:${server.address().port}`], patience)!;
  t.deepEqual((await resolve('a.invalid', 'A')).records, ['127.0.0.2']);
});

test('records of another name in the answer are left out', async (t) => {
  const resolve = await startLiar(t, (query) => {
    const honest = response(query, '127.0.0.2');
    const stray = { type: 'A', name: 'other.invalid', ttl: 0, data: '127.6.6.6' } as const;
    return [{ ...honest, answers: [stray, ...honest.answers!] }];
  });
  t.deepEqual((await resolve('a.invalid', 'A')).records, ['127.0.0.2']);
});

test('a loop of aliases in the answer ends', async (t) => {
  const resolve = await startLiar(t, (query) => [
    {
      ...response(query, ''),
      answers: [
        { type: 'CNAME', name: 'a.invalid', ttl: 0, data: 'b.invalid' },
        { type: 'CNAME', name: 'b.invalid', ttl: 0, data: 'a.invalid' },
      ],
    },
  ]);
  t.deepEqual((await resolve('a.invalid', 'A')).records, []);
});

test('a resolver that does not know EDNS cannot vouch for anything, nor for absence', async (t) => {
  const formErr = 1;
  const resolve = await startLiar(t, (query) => [
    { ...response(query, ''), flags: adBit | formErr, answers: [] },
  ]);
  await t.throwsAsync(resolve('a.invalid', 'A'), { message: /answered FORMERR$/ });
});

test("of the system's resolvers only those on loopback are believed", async (t) => {
  const { dns } = await start(t, { 'a.invalid': { A: ['127.0.0.2'], secure: true } });
  const withSystem = (...systemServers: string[]) => createSecureResolve([], { ...patience, systemServers });
  t.is(withSystem('192.0.2.53', '[2001:db8::53]:5353', '2001:db8::53'), null);
  t.is(withSystem(), null);
  t.is(withSystem('127.0.0.11'), null, 'of Docker');
  const resolve = withSystem('192.0.2.53', dns.address)!;
  t.true((await resolve('a.invalid', 'A')).secure);
  for (const server of ['127.0.0.53', '::1', '[::1]:5353']) t.truthy(withSystem(server), server);
});
