/**
 * A DNS client that reports whether a validating resolver has authenticated the answer (the AD bit of RFC 4035 section
 * 3.2.3), because node:dns does not. It asks by UDP from a random port with a random id, and by TCP if the answer is
 * truncated.
 *
 * This client validates nothing itself, so it trusts the AD bit (RFC 7672 section 2.1.3) only from servers in the settings,
 * and from servers of the system that are on loopback. If there are none of these, there is no secure resolver.
 *
 * An answer is a list of records or "none", each secure or not. If the answer is unknown, the promise rejects: after
 * SERVFAIL (also a validating resolver's answer about forged data), FORMERR (from a resolver without EDNS) or no answer.
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
import { normalName } from '#platform/base/net/resolve.ts';
import { askOverTcp, type DnsServer, parseServer } from './dns-over-tcp.ts';

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
  /** The resolver has authenticated the whole answer, also the absence of records. */
  secure: boolean;
  /** The owner of the records: the queried name, or the target of its aliases. */
  owner: string;
}

export type SecureResolve = <Type extends keyof RecordData>(
  name: string,
  type: Type,
) => Promise<SecureAnswer<RecordData[Type]>>;

interface SecureOptions {
  /** The time limit of one query to one server. */
  timeoutMs: number;
  /** Maximum number of queries to each server. */
  tries: number;
  /** The servers of the system, as node:dns writes them. */
  systemServers: string[];
}

/** dns-packet's types do not have the response code. */
type Response = DecodedPacket & { rcode: string };

interface Query {
  id: number;
  name: string;
  type: keyof RecordData;
  packet: Buffer;
}

/** Fits into one packet on every network (RFC 9715 section 3.2). */
const udpPayloadSize = 1232;

/** `servers`: those of the settings, as `host:port`; if empty, the system's. Null: none of them can be trusted. */
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

/** Docker's resolver is on loopback, but forwards to other servers and passes on their AD bit. */
const forwarder = '127.0.0.11';

function isLoopback({ host }: DnsServer): boolean {
  if (host === forwarder) return false;
  return host === '::1' || (net.isIPv4(host) && host.startsWith('127.'));
}

/**
 * Asks one server after the other, then again those that did not answer. A server that answered with an error is not asked
 * again.
 */
async function askAll(
  servers: DnsServer[],
  name: string,
  type: keyof RecordData,
  { timeoutMs, tries }: Pick<SecureOptions, 'timeoutMs' | 'tries'>,
): Promise<Response> {
  let reason = '';
  const failed = new Set<DnsServer>();
  for (let round = 0; round < tries; round++) {
    for (const server of servers.filter((one) => !failed.has(one))) {
      try {
        const response = await ask(server, newQuery(name, type), timeoutMs);
        if (response.rcode === 'NOERROR' || response.rcode === 'NXDOMAIN') return response;
        failed.add(server);
        reason = `the DNS server ${server.host} answered ${response.rcode}`;
      } catch (error) {
        reason = `the DNS server ${server.host} ${(error as Error).message}`;
      }
    }
  }
  throw new Error(`${name} ${type}: ${reason}`);
}

function newQuery(name: string, type: keyof RecordData): Query {
  const id = randomInt(0x10000);
  const packet = encode({
    type: 'query',
    id,
    // RFC 6840 section 5.7: AD in a query requests the bit in the response.
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

async function ask(server: DnsServer, query: Query, timeoutMs: number): Promise<Response> {
  const response = await askByUdp(server, query, timeoutMs);
  return response === 'truncated' ? askByTcp(server, query, timeoutMs) : response;
}

/** The socket is connected, so it receives only packets from this server. Packets that are not the response are ignored. */
function askByUdp(
  { host, port }: DnsServer,
  query: Query,
  timeoutMs: number,
): Promise<Response | 'truncated'> {
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

/** A truncated response only says to ask again by TCP; its records are ignored (RFC 2181 section 9). */
function isTruncated(packet: Buffer, { id }: Query): boolean {
  return packet.length >= 12 && packet.readUInt16BE(0) === id && (packet[2]! & 0x82) === 0x82;
}

/** RFC 1035 section 4.2.2: over TCP, each message follows its length in two bytes. */
async function askByTcp(server: DnsServer, query: Query, timeoutMs: number): Promise<Response> {
  const response = readResponse(await askOverTcp(server, query.packet, timeoutMs), query);
  if (response) return response;
  throw new Error('answered something else over TCP');
}

/** The response to the query; undefined if the packet is not that (RFC 5452 section 4.1). */
function readResponse(packet: Buffer, { id, name, type }: Query): Response | undefined {
  try {
    const response = decode(packet) as Response;
    const [question, ...more] = response.questions ?? [];
    const isOurs =
      response.type === 'response' &&
      response.id === id &&
      more.length === 0 &&
      question?.type === type &&
      normalName(question.name) === normalName(name);
    return isOurs ? response : undefined;
  } catch {
    return undefined;
  }
}

/** Follows the aliases from the queried name. Other records of the response, such as signatures, are ignored. */
function answerOf<Type extends keyof RecordData>(
  { answers = [], flag_ad: secure }: Response,
  name: string,
  type: Type,
): SecureAnswer<RecordData[Type]> {
  let owner = normalName(name);
  const seen = new Set<string>();
  while (type !== 'CNAME' && !seen.has(owner)) {
    seen.add(owner);
    const alias = answers.find((answer) => answer.type === 'CNAME' && normalName(answer.name) === owner);
    if (alias) owner = normalName(dataOf<'CNAME'>(alias));
  }
  const records = answers
    .filter((answer) => answer.type === type && normalName(answer.name) === owner)
    .map((answer) => dataOf<Type>(answer));
  return { records, secure, owner };
}

function dataOf<Type extends keyof RecordData>(answer: Answer): RecordData[Type] {
  return (answer as unknown as { data: RecordData[Type] }).data;
}
