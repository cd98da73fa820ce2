/**
 * A primary name server that takes updates (RFC 2136), such as BIND, Knot or PowerDNS, with a TSIG key. Everything goes over TCP to
 * that server. Each record is one update whose prerequisites are the records that the plan has seen, so that a change made
 * meanwhile is never overwritten.
 */
import { randomInt } from 'node:crypto';
import { type DecodedPacket, decode, encode, type MxData, type RecordType } from 'dns-packet';
import { askOverTcp, type DnsServer } from '#mail/deliver/route/dns-over-tcp.ts';
import { type Change, type DnsProvider, type PresentRecord, replacedBy } from './plan-changes.ts';
import {
  encodeUpdate,
  type Prerequisite,
  sign,
  type TsigKey,
  type Update,
  verify,
} from './update-message.ts';

interface Options {
  server: DnsServer;
  key: TsigKey;
  /** In milliseconds. */
  now(): number;
  timeoutMs?: number;
}

/** dns-packet's types do not have the response code and the flag. */
type Response = DecodedPacket & { rcode: string; flag_aa: boolean };

const readTypes = ['CNAME', 'TXT', 'MX', 'A', 'AAAA'] as const;

export class Rfc2136 implements DnsProvider {
  readonly name: string;
  readonly #options: Options;

  constructor(options: Options) {
    this.#options = options;
    this.name = `the DNS server ${options.server.host}`;
  }

  async read(name: string): Promise<PresentRecord[] | null> {
    if ((await this.#zoneOf(name)) === null) return null;
    const found: PresentRecord[] = [];
    for (const type of readTypes) {
      const { rcode, answers = [] } = await this.#ask(name, type);
      if (rcode !== 'NOERROR' && rcode !== 'NXDOMAIN')
        throw new Error(`${this.name} has no answer for ${type} ${name} (${rcode})`);
      for (const answer of answers) {
        const isAsked = answer.type === type && answer.name.toLowerCase() === name.toLowerCase();
        if (isAsked) found.push(presentRecord(type, name, answer.data));
      }
    }
    return found;
  }

  async write(change: Change): Promise<void> {
    const { record } = change;
    const zone = await this.#zoneOf(record.name);
    if (zone === null) throw new Error(`${this.name} is not the authority for ${record.name}`);
    const update = {
      zone,
      prerequisites: prerequisitesOf(change),
      remove: replacedBy(change),
      add: [record],
    };
    await this.#send(update, record.name);
  }

  /** Null: the server is not the authority for the name. */
  async #zoneOf(name: string): Promise<string | null> {
    const { rcode, flag_aa: isAuthority, answers = [], authorities = [] } = await this.#ask(name, 'SOA');
    if (rcode === 'SERVFAIL') throw new Error(`${this.name} has no answer for ${name} (SERVFAIL)`);
    // An alias is answered with its target. It is never the top of a zone, so the name above is in the same zone.
    const above = name.split('.').slice(1).join('.');
    if (isAuthority && above && answers[0]?.type === 'CNAME') return this.#zoneOf(above);
    const soa = [...answers, ...authorities].find(({ type }) => type === 'SOA');
    return isAuthority && soa ? soa.name : null;
  }

  async #ask(name: string, type: RecordType): Promise<Response> {
    const questions = [{ name, type }];
    const bytes = await this.#exchange(encode({ type: 'query', id: randomInt(65536), questions }));
    try {
      return decode(bytes) as Response;
    } catch {
      throw new Error(`${this.name} answered something that is not a DNS message`);
    }
  }

  async #send(update: Update, changed: string): Promise<void> {
    const { key, now } = this.#options;
    const { packet, mac } = sign(encodeUpdate(randomInt(65536), update), key, seconds(now()));
    const response = await this.#exchange(packet);
    const rcode = response.readUInt16BE(2) & 15;
    const verdict = this.#verdictOn(response, mac);
    if (verdict !== null) throw new Error(`${this.name}: ${signatureTroubles[verdict]}`);
    if (rcode === 0) return;
    if (failedPrerequisites.includes(rcode)) throw new Error(changedMeanwhile(changed));
    const code = rcodes[rcode] ?? `code ${rcode}`;
    throw new Error(
      `${this.name} refused to change ${changed} (${code}); does the key have the right to update it?`,
    );
  }

  #verdictOn(response: Buffer, mac: Buffer) {
    const { key, now } = this.#options;
    try {
      return verify(response, key, mac, seconds(now()));
    } catch (error) {
      if (error instanceof RangeError)
        throw new Error(`${this.name} answered something that is not a DNS message`);
      throw error;
    }
  }

  async #exchange(packet: Buffer): Promise<Buffer> {
    const { server, timeoutMs = 10_000 } = this.#options;
    try {
      const response = await askOverTcp(server, packet, timeoutMs);
      if (response.length >= headerLength && response.readUInt16BE() === packet.readUInt16BE())
        return response;
    } catch (error) {
      throw new Error(`${this.name} ${(error as Error).message}`);
    }
    throw new Error(`${this.name} answered something else`);
  }
}

const headerLength = 12;

const seconds = (ms: number) => Math.floor(ms / 1000);

export const changedMeanwhile = (name: string) =>
  `the records at ${name} have changed since they were read, so nothing was written there; run the command again`;

/** RFC 2136 section 2.2. */
const rcodes: Record<number, string> = {
  1: 'FORMERR',
  2: 'SERVFAIL',
  3: 'NXDOMAIN',
  4: 'NOTIMP',
  5: 'REFUSED',
  9: 'NOTAUTH',
  10: 'NOTZONE',
};
/** YXDOMAIN, YXRRSET, NXRRSET. */
const failedPrerequisites = [6, 7, 8];

const signatureTroubles = {
  BADKEY: 'it does not take the key; check the name in POSTERN_DNS_UPDATE_KEY, and what the key may update',
  BADSIG: 'the secret in POSTERN_DNS_UPDATE_KEY is not the one that it has',
  BADTIME: 'its clock and the one of this machine differ by more than five minutes',
  'not signed': 'its answer is not signed with the key, so it does not count',
  'not signed with the key': 'its answer has a wrong signature, so it does not count',
};

/** Require, for each type that the change depends on, exactly the records that were seen. */
function prerequisitesOf({ record: { type, name }, present }: Change): Prerequisite[] {
  if (type === 'CNAME' && present.length === 0) return [{ kind: 'name-unused', name }];
  return ['CNAME', type].map((each): Prerequisite => {
    const records = present.filter((one) => one.type === each);
    return records.length === 0 ? { kind: 'no-records', name, type: each } : { kind: 'records', records };
  });
}

function presentRecord(type: string, name: string, data: unknown): PresentRecord {
  if (type === 'TXT') {
    const strings = data as Buffer[];
    return { type, name, value: Buffer.concat(strings).toString(), strings };
  }
  if (type !== 'MX') return { type, name, value: String(data) };
  const { preference, exchange } = data as MxData;
  return { type, name, value: `${preference} ${exchange}` };
}
