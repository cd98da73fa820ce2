/**
 * The DNS of the tests: one server on 127.0.0.1 that is the authority for everything and the resolver too, on UDP
 * and TCP at one ephemeral port (or at port 53 of another host, for programs that know no other), answering from a zone literal:
 *
 *   const dns = await startDns({
 *     'example.invalid': { MX: ['10 mx1.example.invalid', '20 mx2.example.invalid'], TXT: ['v=spf1 -all'] },
 *     'mx1.example.invalid': { A: ['127.0.0.2'] },
 *     'nomail.invalid': { MX: ['0 .'] },                               // null MX, RFC 7505
 *     'broken.invalid': 'SERVFAIL',                                    // or 'REFUSED', or 'TIMEOUT': no answer
 *     'half.invalid': { MX: ['10 x.invalid'], A: 'SERVFAIL' },         // a failure of one type only
 *     'signed.invalid': { A: ['127.0.0.3'], secure: true },            // as if validated: AD, also for names below it
 *   });
 *   resolver.setServers([dns.address]);
 *
 * A name in the zone without the type asked for: NOERROR, no data (also a name that only has names below it). Any
 * other name: NXDOMAIN. A CNAME is followed for the other types. A record it cannot read throws when it is given,
 * not when it is asked for. Every TTL is 0: what `set` changes is seen by the next query.
 *
 * `secure` makes it a validating resolver by word alone: it sets AD for those who ask for it (RFC 6840 section 5.8)
 * where every name of the answer is secure. What a validating resolver finds forged is a SERVFAIL.
 *
 * BUGS: no wildcards, no signatures, no name compression, so answers are larger than a real server's.
 */
import dgram from 'node:dgram';
import { once } from 'node:events';
import net from 'node:net';
import {
  type Answer,
  AUTHENTIC_DATA,
  AUTHORITATIVE_ANSWER,
  type DecodedPacket,
  decode,
  encode,
  type Packet,
  type Question,
  RECURSION_AVAILABLE,
  RECURSION_DESIRED,
  TRUNCATED_RESPONSE,
} from 'dns-packet';
import { normalName } from '#platform/base/net/resolve.ts';

type DnsFailure = 'SERVFAIL' | 'REFUSED' | 'TIMEOUT';
type DnsType = 'A' | 'AAAA' | 'MX' | 'TXT' | 'CNAME' | 'PTR' | 'TLSA';
type ZoneEntry = DnsFailure | ({ [T in DnsType]?: string[] | DnsFailure } & { secure?: boolean });
export type Zone = Record<string, ZoneEntry>;

export interface Dns {
  port: number;
  /** 'HOST:PORT', as Resolver.setServers takes it. */
  address: string;
  /** Replaces the entries of the names given; null removes the name. */
  set(patch: Record<string, ZoneEntry | null>): void;
  /** Every question asked, in order, names in small letters; one asked again by TCP is there twice. */
  queries: { name: string; type: string }[];
  close(): Promise<void>;
}

export async function startDns(zone: Zone = {}, { host = '127.0.0.1', port: wanted = 0 } = {}): Promise<Dns> {
  const names: Names = new Map();
  const queries: Dns['queries'] = [];
  const connections = new Set<net.Socket>();
  const { udp, tcp, port } = await bindBoth(host, wanted);

  const set: Dns['set'] = (patch) => {
    for (const [name, entry] of Object.entries(patch)) {
      if (entry === null) names.delete(normalName(name));
      else names.set(normalName(name), parseEntry(name, entry));
    }
  };

  /** What to send back for one packet; nothing for a TIMEOUT and for what is not a DNS query. */
  const respond = (packet: Buffer, sizeLimit?: number): Buffer | undefined => {
    const query = parseQuery(packet);
    const question = query?.questions?.[0];
    if (!query || !question) return undefined;
    queries.push({ name: normalName(question.name), type: question.type });
    const found = resolve(names, question);
    return found.rcode === 'TIMEOUT'
      ? undefined
      : toPacket(query, question, found, sizeLimit ?? udpLimit(query));
  };

  udp.on('message', (packet, from) => {
    const response = respond(packet);
    // A client that is gone by now makes the send fail, which is no concern of the server.
    if (response) udp.send(response, from.port, from.address, () => {});
  });
  tcp.on('connection', (socket) => {
    connections.add(socket);
    socket.on('close', () => connections.delete(socket));
    serveTcp(socket, (packet) => respond(packet, 0xffff));
  });

  let closing: Promise<unknown> | undefined;
  const close = async () => {
    for (const socket of connections) socket.destroy();
    closing ??= Promise.all([
      new Promise<void>((done) => udp.close(done)),
      new Promise((done) => tcp.close(done)),
    ]);
    await closing;
  };

  try {
    set(zone);
  } catch (error) {
    await close();
    throw error;
  }
  return { port, address: `${host}:${port}`, set, queries, close };
}

// The zone: presentation format in, dns-packet's answers out.

type Names = Map<string, ParsedEntry>;
type ParsedEntry = DnsFailure | ({ [T in DnsType]?: DnsFailure | Data[] } & { secure?: boolean });
/** The `data` of an Answer; its form belongs to the type it was parsed for. */
type Data = Exclude<Answer, { type: 'OPT' }>['data'];

const parsers: Record<DnsType, (value: string) => Data | undefined> = {
  A: (value) => (net.isIPv4(value) ? value : undefined),
  AAAA: (value) => (net.isIPv6(value) ? value : undefined),
  CNAME: (value) => value,
  PTR: (value) => value,
  TXT: characterStrings,
  MX(value) {
    const [, preference, exchange] = /^(\d+) (\S+)$/.exec(value) ?? [];
    return exchange ? { preference: Number(preference), exchange } : undefined;
  },
  TLSA(value) {
    const [, usage, selector, matchingType, hex] = /^(\d) (\d) (\d) ((?:[0-9a-f]{2})+)$/i.exec(value) ?? [];
    if (!hex) return undefined;
    const certificate = Buffer.from(hex, 'hex');
    return {
      usage: Number(usage),
      selector: Number(selector),
      matchingType: Number(matchingType),
      certificate,
    };
  },
};

/** RFC 1035 section 3.3.14: a TXT record is a row of strings of at most 255 bytes. */
function characterStrings(value: string): Buffer[] {
  const bytes = Buffer.from(value);
  const strings = [bytes.subarray(0, 255)];
  for (let at = 255; at < bytes.length; at += 255) strings.push(bytes.subarray(at, at + 255));
  return strings;
}

function parseEntry(name: string, entry: ZoneEntry): ParsedEntry {
  if (typeof entry === 'string') return entry;
  const { secure = false, ...records } = entry;
  const parsed: ParsedEntry = { secure };
  for (const [key, values] of Object.entries(records)) {
    const type = key as DnsType;
    if (!parsers[type]) throw new Error(`zone: ${name} has records of the unknown type ${type}`);
    parsed[type] = Array.isArray(values) ? values.map((value) => parseRecord(name, type, value)) : values;
  }
  return parsed;
}

function parseRecord(name: string, type: DnsType, value: string): Data {
  const data = parsers[type](value);
  if (data === undefined) throw new Error(`zone: ${name} ${type} cannot be '${value}'`);
  return data;
}

// The answer to one question.

interface Found {
  rcode: DnsFailure | 'NOERROR' | 'NXDOMAIN';
  answers: Answer[];
  secure: boolean;
}

function resolve(names: Names, question: Question, hops = 8): Found {
  const { name } = question;
  const type = question.type as DnsType;
  const entry = names.get(normalName(name));
  const secure = isSecure(names, name);
  const none = { answers: [], secure };
  if (entry === undefined) return { rcode: hasNamesBelow(names, name) ? 'NOERROR' : 'NXDOMAIN', ...none };
  if (typeof entry === 'string') return { rcode: entry, ...none };

  const records = entry[type];
  const alias = entry.CNAME;
  if (!records && alias) return follow(names, question, alias, hops);
  if (typeof records === 'string') return { rcode: records, ...none };
  const answers = (records ?? []).map((data) => ({ name, type, ttl: 0, data }) as Answer);
  return { rcode: 'NOERROR', answers, secure };
}

function follow(names: Names, question: Question, alias: DnsFailure | Data[], hops: number): Found {
  const { name } = question;
  const secure = isSecure(names, name);
  if (typeof alias === 'string') return { rcode: alias, answers: [], secure };
  // A loop: what a resolver says when it gives up (RFC 1034 section 3.6.2).
  if (hops === 0) return { rcode: 'SERVFAIL', answers: [], secure };
  const target = String(alias[0]);
  const found = resolve(names, { ...question, name: target }, hops - 1);
  return {
    rcode: found.rcode,
    answers: [{ name, type: 'CNAME', ttl: 0, data: target }, ...found.answers],
    secure: secure && found.secure,
  };
}

/** By the nearest name of the zone at or above it: that one's signatures also prove what is not there. */
function isSecure(names: Names, name: string): boolean {
  const labels = normalName(name).split('.');
  const nearest = labels
    .map((_, at) => names.get(labels.slice(at).join('.')))
    .find((entry) => typeof entry === 'object');
  return typeof nearest === 'object' && nearest.secure === true;
}

function hasNamesBelow(names: Names, name: string): boolean {
  const ending = `.${normalName(name)}`;
  return [...names.keys()].some((other) => other.endsWith(ending));
}

// Packets.

/** RFC 1035 section 4.1.1. */
const rcodes = { NOERROR: 0, SERVFAIL: 2, NXDOMAIN: 3, REFUSED: 5 };

function parseQuery(packet: Buffer): DecodedPacket | undefined {
  try {
    const query = decode(packet);
    return query.type === 'query' ? query : undefined;
  } catch {
    return undefined;
  }
}

function toPacket(
  query: DecodedPacket,
  question: Question,
  { rcode, answers, secure }: Found,
  sizeLimit: number,
): Buffer {
  const vouches = secure && rcode !== 'SERVFAIL' && (query.flag_ad || edns(query)?.flag_do);
  const flags =
    AUTHORITATIVE_ANSWER |
    RECURSION_AVAILABLE |
    (query.flag_rd ? RECURSION_DESIRED : 0) |
    (vouches ? AUTHENTIC_DATA : 0);
  const packet: Packet = {
    type: 'response',
    id: query.id,
    flags: flags | rcodes[rcode as keyof typeof rcodes],
    questions: [question],
    answers,
    // RFC 2308 section 2: the SOA tells "no such data" from a referral.
    authorities:
      rcode === 'NXDOMAIN' || (rcode === 'NOERROR' && answers.length === 0) ? [soa(question.name)] : [],
    // RFC 6891 section 6.1.1: an OPT is answered with an OPT.
    additionals: edns(query) ? [ednsReply] : [],
  };
  const bytes = encode(packet);
  if (bytes.length <= sizeLimit) return bytes;
  // RFC 2181 section 9: the client takes nothing from a truncated answer but the advice to come by TCP.
  return encode({ ...packet, flags: packet.flags! | TRUNCATED_RESPONSE, answers: [], authorities: [] });
}

function soa(name: string): Answer {
  const top = normalName(name).split('.').at(-1) || '.';
  return {
    name: top,
    type: 'SOA',
    ttl: 0,
    data: { mname: 'ns.invalid', rname: 'hostmaster.invalid', serial: 1 },
  };
}

const ednsReply: Answer = {
  name: '.',
  type: 'OPT',
  udpPayloadSize: 4096,
  extendedRcode: 0,
  ednsVersion: 0,
  flags: 0,
  flag_do: false,
  options: [],
};

function edns(query: Packet) {
  return query.additionals?.find((record) => record.type === 'OPT');
}

/** RFC 1035 section 4.2.1, unless the client says it takes more (RFC 6891 section 6.2.3). */
function udpLimit(query: Packet): number {
  return Math.max(512, edns(query)?.udpPayloadSize ?? 0);
}

// Sockets.

/** RFC 1035 section 4.2.2: on TCP every message comes after its length in two bytes. */
function serveTcp(socket: net.Socket, respond: (packet: Buffer) => Buffer | undefined): void {
  let received: Buffer = Buffer.alloc(0);
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk) => {
    received = Buffer.concat([received, chunk]);
    while (received.length >= 2 && received.length >= 2 + received.readUInt16BE()) {
      const end = 2 + received.readUInt16BE();
      const response = respond(received.subarray(2, end));
      received = received.subarray(end);
      if (!response) continue;
      const length = Buffer.alloc(2);
      length.writeUInt16BE(response.length);
      socket.write(Buffer.concat([length, response]));
    }
  });
}

/** A free TCP port is not always free for UDP: then another is tried. */
async function bindBoth(
  host: string,
  wanted: number,
): Promise<{ udp: dgram.Socket; tcp: net.Server; port: number }> {
  for (let attempt = 1; ; attempt++) {
    const tcp = net.createServer().listen(wanted, host);
    await once(tcp, 'listening');
    const { port } = tcp.address() as net.AddressInfo;
    const udp = dgram.createSocket('udp4');
    try {
      udp.bind(port, host);
      await once(udp, 'listening');
      return { udp, tcp, port };
    } catch (error) {
      udp.close();
      tcp.close();
      if (attempt === 20) throw error;
    }
  }
}
