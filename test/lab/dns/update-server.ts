/**
 * A primary name server of one zone on TCP that takes updates: it checks the form of each packet, its prerequisites and its
 * signature by itself, with nothing of src/. `answer` makes it misbehave.
 */
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import net from 'node:net';
import { type Answer, AUTHORITATIVE_ANSWER, decode, encode } from 'dns-packet';

export interface UpdateServer {
  port: number;
  /** `TYPE name value`; the strings of a text are joined. */
  records: Set<string>;
  /** The updates that were applied, as lines: prerequisites, then changes. */
  updates: string[][];
  /** Replaces the bytes of an answer to an update; null: none is sent and the connection stays. */
  answer: ((honest: Buffer) => Buffer | null) | null;
  close(): Promise<void>;
}

interface Options {
  zone: string;
  key: { name: string; secret: Buffer };
  records?: string[];
}

interface Item {
  name: string;
  type: string;
  class: string;
  /** The value of a record that has one. */
  value: string;
  data: Buffer;
}

interface Message {
  zone: string;
  prerequisites: Item[];
  changes: Item[];
  tsig: Item;
}

export async function startUpdateServer({ zone, key, records = [] }: Options): Promise<UpdateServer> {
  const sockets = new Set<net.Socket>();
  const state: UpdateServer = {
    port: 0,
    records: new Set(records),
    updates: [],
    answer: null,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
  const server = net.createServer((socket) => {
    sockets.add(socket);
    let received: Buffer = Buffer.alloc(0);
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < 2 || received.length < 2 + received.readUInt16BE()) return;
      const packet = received.subarray(2);
      const isUpdate = ((packet.readUInt16BE(2) >> 11) & 15) === 5;
      const response = isUpdate ? update(packet) : query(packet);
      if (response === null) return;
      const length = Buffer.alloc(2);
      length.writeUInt16BE(response.length);
      socket.write(Buffer.concat([length, response]));
    });
  });

  function query(packet: Buffer): Buffer {
    const { id, questions } = decode(packet);
    const [{ name, type }] = questions as [{ name: string; type: string }];
    const soa = { name: zone, type: 'SOA', data: { mname: `ns.${zone}`, rname: `x.${zone}` } };
    const isHere = name === zone || name.endsWith(`.${zone}`);
    const found = [...state.records].map(toAnswer).filter((one) => one.name === name);
    const answers = found.filter((one) => one.type === type || one.type === 'CNAME');
    return encode({
      type: 'response',
      id,
      flags: isHere ? AUTHORITATIVE_ANSWER : 5,
      questions,
      answers: answers as Answer[],
      authorities: isHere && answers.length === 0 ? [soa as Answer] : [],
    });
  }

  function update(packet: Buffer): Buffer | null {
    const message = parseUpdate(packet);
    if (message.zone !== zone) throw new Error(`not the zone: ${message.zone}`);
    const signed = checkSignature(packet, message.tsig, key);
    const rcode = signed === null ? 9 : refusalOf(state.records, message.prerequisites);
    if (rcode === 0) {
      state.updates.push([...message.prerequisites, ...message.changes].map(lineOf));
      for (const one of message.changes) apply(state.records, one);
    }
    const honest = respond(packet, rcode, signed, key);
    return state.answer ? state.answer(honest) : honest;
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  state.port = (server.address() as net.AddressInfo).port;
  return state;
}

const typeNames: Record<number, string> = {
  1: 'A',
  5: 'CNAME',
  6: 'SOA',
  15: 'MX',
  16: 'TXT',
  250: 'TSIG',
  255: 'ANY',
};
const classNames: Record<number, string> = { 1: 'IN', 254: 'NONE', 255: 'ANY' };

const textOf = ({ type, name, value }: Item) => `${type} ${name} ${value}`;
const lineOf = (one: Item) => `${one.class} ${textOf(one)}`;

function apply(records: Set<string>, one: Item): void {
  if (one.class === 'NONE') records.delete(textOf(one));
  else if (one.class === 'IN') records.add(textOf(one));
  else throw new Error(`a class that is not expected: ${lineOf(one)}`);
}

/** RFC 2136 section 3.2. */
function refusalOf(records: Set<string>, prerequisites: Item[]): number {
  const present = [...records];
  const some = prerequisites.filter((one) => one.class === 'IN');
  for (const [set, wanted] of Map.groupBy(some, ({ name, type }) => `${type} ${name} `)) {
    const there = present.filter((one) => one.startsWith(set));
    if (there.sort().join() !== wanted.map(textOf).sort().join()) return 8;
  }
  for (const { name, type } of prerequisites.filter((one) => one.class === 'NONE')) {
    if (type === 'ANY' && present.some((one) => one.split(' ')[1] === name)) return 6;
    if (present.some((one) => one.startsWith(`${type} ${name} `))) return 7;
  }
  return 0;
}

function parseUpdate(packet: Buffer): Message {
  const [zones, ...counts] = [4, 6, 8, 10].map((at) => packet.readUInt16BE(at)) as [
    number,
    number,
    number,
    number,
  ];
  let at = 12;
  const readName = (bytes = packet, start?: number) => {
    const labels: string[] = [];
    let place = start ?? at;
    for (let length = bytes[place]!; length > 0; length = bytes[place]!) {
      labels.push(bytes.toString('latin1', place + 1, place + 1 + length));
      place += 1 + length;
    }
    if (start === undefined) at = place + 1;
    return labels.join('.');
  };
  const readItem = (): Item => {
    const name = readName();
    const type = typeNames[packet.readUInt16BE(at)]!;
    const end = at + 10 + packet.readUInt16BE(at + 8);
    const data = packet.subarray(at + 10, end);
    const item = { name, type, class: classNames[packet.readUInt16BE(at + 2)]!, value: '', data };
    if (type === 'CNAME' && data.length > 0) item.value = readName(data, 0);
    for (let string = 0; type === 'TXT' && string < data.length; string += 1 + data[string]!)
      item.value += data.toString('utf8', string + 1, string + 1 + data[string]!);
    at = end;
    return item;
  };
  const zone = readName();
  if (zones !== 1 || packet.readUInt16BE(at) !== 6) throw new Error('not one zone');
  at += 4;
  const [prerequisites, changes, [tsig]] = counts.map((count) => Array.from({ length: count }, readItem)) as [
    Item[],
    Item[],
    [Item],
  ];
  if (at !== packet.length || tsig?.type !== 'TSIG') throw new Error('not signed, or with more behind');
  return { zone, prerequisites, changes, tsig };
}

function toAnswer(record: string): { type: string; name: string; ttl: number; data: unknown } {
  const [, type, name, value] = /^(\S+) (\S+) (.*)$/s.exec(record) as unknown as [
    string,
    string,
    string,
    string,
  ];
  return { type, name, ttl: 60, data: type === 'TXT' ? value.match(/.{1,255}/gs)! : value };
}

const wireName = (name: string) =>
  Buffer.from(
    `${name
      .split('.')
      .map((label) => `${String.fromCharCode(label.length)}${label}`)
      .join('')}\0`,
    'latin1',
  );

/** The MAC of the request, or null if it is not that of the key. */
function checkSignature(packet: Buffer, tsig: Item, key: Options['key']): Buffer | null {
  const [owner, algorithm] = [wireName(tsig.name), wireName('hmac-sha256')];
  const { data } = tsig;
  if (!data.subarray(0, algorithm.length).equals(algorithm)) throw new Error('not hmac-sha256');
  const rest = data.subarray(algorithm.length);
  const mac = rest.subarray(10, 10 + rest.readUInt16BE(8));
  const message = Buffer.from(packet.subarray(0, packet.length - owner.length - 10 - data.length));
  message.writeUInt16BE(message.readUInt16BE(10) - 1, 10);
  const variables = [
    owner,
    Buffer.from([0, 255, 0, 0, 0, 0]),
    algorithm,
    rest.subarray(0, 8),
    Buffer.alloc(4),
  ];
  const own = createHmac('sha256', key.secret)
    .update(Buffer.concat([message, ...variables]))
    .digest();
  return tsig.name === key.name && own.equals(mac) ? mac : null;
}

function respond(packet: Buffer, rcode: number, requestMac: Buffer | null, key: Options['key']): Buffer {
  const head = Buffer.from(packet.subarray(0, 12));
  head.writeUInt16BE(0x8000 | (5 << 11) | rcode, 2);
  head.fill(0, 4);
  const [owner, algorithm] = [wireName(key.name), wireName('hmac-sha256')];
  const time = Buffer.alloc(8);
  time.writeUIntBE(Math.floor(Date.now() / 1000), 0, 6);
  time.writeUInt16BE(300, 6);
  const error = Buffer.alloc(4);
  error.writeUInt16BE(requestMac === null ? 16 : 0);
  const length = Buffer.alloc(2);
  length.writeUInt16BE(requestMac?.length ?? 0);
  const variables = [owner, Buffer.from([0, 255, 0, 0, 0, 0]), algorithm, time, error];
  const mac =
    requestMac === null
      ? Buffer.alloc(0)
      : createHmac('sha256', key.secret)
          .update(Buffer.concat([length, requestMac, head, ...variables]))
          .digest();
  const macLength = Buffer.alloc(2);
  macLength.writeUInt16BE(mac.length);
  const data = Buffer.concat([algorithm, time, macLength, mac, head.subarray(0, 2), error]);
  const fixed = Buffer.from([0, 250, 0, 255, 0, 0, 0, 0, 0, data.length]);
  const response = Buffer.concat([head, owner, fixed, data]);
  response.writeUInt16BE(1, 10);
  return response;
}
