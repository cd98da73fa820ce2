/**
 * The only DNS server that a development server asks: it has the records that the domains of its own database need, so every
 * domain that is added is verified at once, and no other name exists. So nothing leaves the machine by name.
 */
import dgram from 'node:dgram';
import { once } from 'node:events';
import { type Answer, AUTHORITATIVE_ANSWER, decode, encode, RECURSION_AVAILABLE } from 'dns-packet';

export interface PublishedRecord {
  type: 'TXT' | 'MX' | 'CNAME';
  name: string;
  value: string;
}

export interface DevDns {
  /** As POSTERN_DNS_SERVERS takes it. */
  address: string;
  close(): void;
}

/** `records` is called for each query. */
export async function startDevDns(records: () => Promise<PublishedRecord[]>): Promise<DevDns> {
  const socket = dgram.createSocket('udp4');
  socket.on('message', (packet, { address, port }) => {
    answerTo(packet, records).then(
      (reply) => socket.send(reply, port, address, () => {}),
      // Not a query, or the database is closed already: the client asks again or gives up.
      () => {},
    );
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return { address: `127.0.0.1:${socket.address().port}`, close: () => socket.close() };
}

async function answerTo(packet: Buffer, records: () => Promise<PublishedRecord[]>): Promise<Buffer> {
  const { id, questions = [] } = decode(packet);
  const [question] = questions;
  const name = question!.name.toLowerCase();
  const found = [...localhost, ...(await records())].filter((record) => record.name.toLowerCase() === name);
  const answers = found.filter(({ type }) => type === question!.type).map(answerOf);
  const nameError = 3;
  const rcode = found.length > 0 ? 0 : nameError;
  const flags = AUTHORITATIVE_ANSWER | RECURSION_AVAILABLE | rcode;
  return encode({ type: 'response', id: id!, flags, questions, answers });
}

const localhost = [{ type: 'A', name: 'localhost', value: '127.0.0.1' }] as const;

function answerOf({ type, name, value }: PublishedRecord | (typeof localhost)[number]): Answer {
  if (type === 'TXT') return { type, name, ttl: 0, data: value.match(/.{1,255}/g) ?? [''] };
  if (type === 'A' || type === 'CNAME') return { type, name, ttl: 0, data: value };
  const [preference, exchange] = value.split(' ') as [string, string];
  return { type, name, ttl: 0, data: { preference: Number(preference), exchange } };
}
