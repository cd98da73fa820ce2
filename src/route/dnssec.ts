/**
 * DNS with its security: asks a validating resolver and reports whether it vouches for the answer (the AD bit of
 * RFC 4035 section 3.2.3). node:dns keeps that bit to itself, so this is a client of its own: UDP from a random port
 * with a random id, TCP for what is truncated.
 *
 * Nothing is validated here, so the bit is only as good as the resolver and the way to it (RFC 7672 section 2.1.3).
 * It is believed of the servers that the operator names in the settings, and of those of the system's that are on
 * loopback; where there are none of these, there is no secure resolver, and whoever needs one goes without.
 *
 * Three answers, as everywhere: records, none (both secure or not), don't know. The last one rejects: SERVFAIL, which
 * is also what a validating resolver says of forged data, FORMERR, which is what one says that knows no EDNS, silence.
 *
 * BUGS: answers are not cached; a resolver on loopback does that.
 */
import { randomInt } from 'node:crypto';
import dgram from 'node:dgram';
import { getServers } from 'node:dns';
import net from 'node:net';
import {
  type Answer,
  AUTHENTIC_DATA,
  type DecodedPacket,
  DNSSEC_OK,
  decode,
  encode,
  type MxData,
  RECURSION_DESIRED,
  type TlsaData,
} from 'dns-packet';

interface RecordData {
  A: string;
  AAAA: string;
  CNAME: string;
  MX: MxData;
  TLSA: TlsaData;
}

interface SecureAnswer<Data> {
  /** Empty: the name has no such records, or does not exist. */
  records: Data[];
  /** The resolver vouches for all of it, for the absence of records too. */
  secure: boolean;
  /** Whose records these are: the name asked for, or the one that its aliases lead to. */
  owner: string;
}

export type SecureResolve = <Type extends keyof RecordData>(
  name: string,
  type: Type,
) => Promise<SecureAnswer<RecordData[Type]>>;

interface SecureOptions {
  /** For one question to one server. */
  timeoutMs: number;
  /** How often each server is asked at most. */
  tries: number;
  /** What the system says, as node:dns writes it. */
  systemServers: string[];
}

/** The library's types leave the response code out. */
type Response = DecodedPacket & { rcode: string };

interface Server {
  host: string;
  port: number;
}

interface Query {
  id: number;
  name: string;
  type: keyof RecordData;
  packet: Buffer;
}

/** Fits into one packet of every network (RFC 9715 section 3.2). */
const udpPayloadSize = 1232;

/** `servers`: the operator's, `host:port` each; none means the system's. Null: none that can be trusted. */
export function createSecureResolve(
  servers: string[],
  options: Partial<SecureOptions> = {},
): SecureResolve | null {
  const { timeoutMs = 3000, tries = 2, systemServers = getServers() } = options;
  const trusted =
    servers.length > 0 ? servers.map(parseServer) : systemServers.map(parseServer).filter(isLoopback);
  if (trusted.length === 0) return null;
  return async (name, type) => {
    const response = await askAll(trusted, name, type, { timeoutMs, tries });
    return answerOf(response, name, type);
  };
}

/** `127.0.0.1:53`, `[::1]:53`, and from node:dns also `127.0.0.1` and `::1`. */
function parseServer(text: string): Server {
  if (net.isIP(text)) return { host: text, port: 53 };
  const [, v6, v4, port] = /^(?:\[(.+)\]|(.+)):(\d+)$/.exec(text)!;
  return { host: (v6 ?? v4)!, port: Number(port) };
}

/** Docker's, on loopback too, passes all on to servers elsewhere, and their bit with it. */
const forwarder = '127.0.0.11';

function isLoopback({ host }: Server): boolean {
  if (host === forwarder) return false;
  return host === '::1' || (net.isIPv4(host) && host.startsWith('127.'));
}

// Asking.

/** One server after the other, then the silent ones again; one that has answered that it failed is not asked twice. */
async function askAll(
  servers: Server[],
  name: string,
  type: keyof RecordData,
  { timeoutMs, tries }: Pick<SecureOptions, 'timeoutMs' | 'tries'>,
): Promise<Response> {
  let trouble = '';
  const failed = new Set<Server>();
  for (let round = 0; round < tries; round++) {
    for (const server of servers.filter((one) => !failed.has(one))) {
      try {
        const response = await ask(server, newQuery(name, type), timeoutMs);
        if (response.rcode === 'NOERROR' || response.rcode === 'NXDOMAIN') return response;
        failed.add(server);
        trouble = `the DNS server ${server.host} answered ${response.rcode}`;
      } catch (error) {
        trouble = `the DNS server ${server.host} ${(error as Error).message}`;
      }
    }
  }
  throw new Error(`${name} ${type}: ${trouble}`);
}

function newQuery(name: string, type: keyof RecordData): Query {
  const id = randomInt(0x10000);
  const packet = encode({
    type: 'query',
    id,
    // RFC 6840 section 5.7: AD in a query asks for it in the response.
    flags: RECURSION_DESIRED | AUTHENTIC_DATA,
    questions: [{ name, type }],
    additionals: [
      {
        type: 'OPT',
        name: '.',
        udpPayloadSize,
        extendedRcode: 0,
        ednsVersion: 0,
        flags: DNSSEC_OK,
        flag_do: true,
        options: [],
      },
    ],
  });
  return { id, name, type, packet };
}

async function ask(server: Server, query: Query, timeoutMs: number): Promise<Response> {
  const response = await askByUdp(server, query, timeoutMs);
  return response === 'truncated' ? askByTcp(server, query, timeoutMs) : response;
}

/** The socket is connected, so the system lets nothing in but what comes from the server. Strays are not heeded. */
function askByUdp({ host, port }: Server, query: Query, timeoutMs: number): Promise<Response | 'truncated'> {
  const socket = dgram.createSocket(net.isIPv6(host) ? 'udp6' : 'udp4');
  let timer: NodeJS.Timeout;
  return new Promise<Response | 'truncated'>((resolve, reject) => {
    const fail = (error: Error | null) => error && reject(new Error(`could not be asked: ${error.message}`));
    timer = setTimeout(() => reject(new Error('did not answer')), timeoutMs);
    socket.on('error', fail);
    socket.on('message', (packet) => {
      const response = isTruncated(packet, query) ? 'truncated' : readResponse(packet, query);
      if (response) resolve(response);
    });
    socket.connect(port, host, ((error?: Error) =>
      error ? fail(error) : socket.send(query.packet, fail)) as () => void);
  }).finally(() => {
    clearTimeout(timer);
    socket.close();
  });
}

/** Of a truncated response nothing counts but the advice to come by TCP (RFC 2181 section 9). */
function isTruncated(packet: Buffer, { id }: Query): boolean {
  return packet.length >= 12 && packet.readUInt16BE(0) === id && (packet[2]! & 0x82) === 0x82;
}

/** RFC 1035 section 4.2.2: on TCP every message comes after its length in two bytes. */
function askByTcp(server: Server, query: Query, timeoutMs: number): Promise<Response> {
  const socket = net.connect(server);
  let timer: NodeJS.Timeout;
  let received: Buffer = Buffer.alloc(0);
  return new Promise<Response>((resolve, reject) => {
    timer = setTimeout(() => reject(new Error('did not answer over TCP')), timeoutMs);
    socket.on('error', (error) => reject(new Error(`could not be asked over TCP: ${error.message}`)));
    socket.on('close', () => reject(new Error('closed the connection')));
    socket.on('connect', () => {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(query.packet.length);
      socket.write(Buffer.concat([length, query.packet]));
    });
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < 2 || received.length < 2 + received.readUInt16BE()) return;
      const response = readResponse(received.subarray(2), query);
      if (response) resolve(response);
      else reject(new Error('answered something else over TCP'));
    });
  }).finally(() => {
    clearTimeout(timer);
    socket.destroy();
  });
}

// Reading.

/** The response to that query; undefined for anything else (RFC 5452 section 4.1). */
function readResponse(packet: Buffer, { id, name, type }: Query): Response | undefined {
  try {
    const response = decode(packet) as Response;
    const [question, ...more] = response.questions ?? [];
    const isOurs =
      response.type === 'response' &&
      response.id === id &&
      more.length === 0 &&
      question?.type === type &&
      normal(question.name) === normal(name);
    return isOurs ? response : undefined;
  } catch {
    return undefined;
  }
}

/** Follows the aliases from the name asked for; what else the response holds (signatures, strays) is left. */
function answerOf<Type extends keyof RecordData>(
  { answers = [], flag_ad: secure }: Response,
  name: string,
  type: Type,
): SecureAnswer<RecordData[Type]> {
  let owner = normal(name);
  const seen = new Set<string>();
  while (type !== 'CNAME' && !seen.has(owner)) {
    seen.add(owner);
    const alias = answers.find((answer) => answer.type === 'CNAME' && normal(answer.name) === owner);
    if (alias) owner = normal(dataOf<'CNAME'>(alias));
  }
  const records = answers
    .filter((answer) => answer.type === type && normal(answer.name) === owner)
    .map((answer) => dataOf<Type>(answer));
  return { records, secure, owner };
}

function dataOf<Type extends keyof RecordData>(answer: Answer): RecordData[Type] {
  return (answer as unknown as { data: RecordData[Type] }).data;
}

/** Names are compared without letter case (RFC 4343) and without the root's dot. */
export function normal(name: string): string {
  return name.toLowerCase().replace(/\.$/, '');
}
