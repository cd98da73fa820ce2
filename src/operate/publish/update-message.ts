/**
 * DNS UPDATE messages (RFC 2136) signed with TSIG (RFC 8945), HMAC-SHA256 only. dns-packet has neither; it encodes the data of the
 * records.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { type Answer, encode } from 'dns-packet';
import { characterStrings, type ZoneRecord } from '#accounts/zone-text.ts';
import type { PresentRecord } from './plan-changes.ts';

export interface TsigKey {
  name: string;
  secret: Buffer;
}

/** A condition that must hold when the server makes the change, or nothing is changed (RFC 2136 section 2.4). */
export type Prerequisite =
  | { kind: 'name-unused'; name: string }
  | { kind: 'no-records'; name: string; type: string }
  /** Exactly these records of one name and type. */
  | { kind: 'records'; records: PresentRecord[] };

export interface Update {
  zone: string;
  prerequisites: Prerequisite[];
  remove: PresentRecord[];
  add: ZoneRecord[];
}

const ttlSeconds = 3600;
const types: Record<string, number> = { A: 1, SOA: 6, MX: 15, TXT: 16, CNAME: 5, AAAA: 28, ANY: 255 };
const tsigType = 250;
const classes = { IN: 1, NONE: 254, ANY: 255 };
const updateOpcode = 5 << 11;
const algorithm = 'hmac-sha256';
/** RFC 8945 section 10: the recommended value. */
const fudgeSeconds = 300;
const headerLength = 12;

export function encodeUpdate(id: number, { zone, prerequisites, remove, add }: Update): Buffer {
  const conditions = prerequisites.flatMap(encodePrerequisite);
  const changes = [
    ...remove.map((record) => encodeRecord(record, classes.NONE, 0)),
    ...add.map((record) => encodeRecord(record, classes.IN, ttlSeconds)),
  ];
  const header = numbers16(id, updateOpcode, 1, conditions.length, changes.length, 0);
  return Buffer.concat([
    header,
    nameBytes(zone),
    numbers16(types.SOA!, classes.IN),
    ...conditions,
    ...changes,
  ]);
}

function encodePrerequisite(condition: Prerequisite): Buffer[] {
  switch (condition.kind) {
    case 'name-unused':
      return [emptyRecord(condition.name, 'ANY', classes.NONE)];
    case 'no-records':
      return [emptyRecord(condition.name, condition.type, classes.NONE)];
    case 'records':
      return condition.records.map((record) => encodeRecord(record, classes.IN, 0));
  }
}

function emptyRecord(name: string, type: string, inClass: number): Buffer {
  return Buffer.concat([nameBytes(name), numbers16(types[type]!, inClass, 0, 0, 0)]);
}

function encodeRecord(record: PresentRecord, inClass: number, ttl: number): Buffer {
  const { type, name } = record;
  const head = Buffer.concat([nameBytes(name), numbers16(types[type]!, inClass, 0, ttl)]);
  return Buffer.concat([head, dataBytes(record)]);
}

/** With its length. A message of dns-packet that has this record alone, at the root, ends with it. */
function dataBytes(record: PresentRecord): Buffer {
  const answer = { type: record.type, name: '.', ttl: 0, data: dataOf(record) } as Answer;
  const rootTypeClassTtl = 1 + 2 + 2 + 4;
  return encode({ answers: [answer] }).subarray(headerLength + rootTypeClassTtl);
}

function dataOf({ type, value, strings }: PresentRecord): unknown {
  if (type === 'TXT') return strings ?? characterStrings(value);
  if (type !== 'MX') return value;
  const [preference, exchange] = value.split(' ');
  return { preference: Number(preference), exchange };
}

export interface Signed {
  packet: Buffer;
  mac: Buffer;
}

export function sign(message: Buffer, key: TsigKey, nowSeconds: number): Signed {
  const time = timeBytes(nowSeconds);
  const mac = macOf(key, [message, ...variablesOf(key, time, fudgeSeconds, 0, Buffer.alloc(0))]);
  const data = Buffer.concat([
    nameBytes(algorithm),
    time,
    numbers16(fudgeSeconds, mac.length),
    mac,
    numbers16(message.readUInt16BE(), 0, 0),
  ]);
  const record = Buffer.concat([
    nameBytes(key.name),
    numbers16(tsigType, classes.ANY, 0, 0, data.length),
    data,
  ]);
  const packet = Buffer.concat([message, record]);
  packet.writeUInt16BE(message.readUInt16BE(10) + 1, 10);
  return { packet, mac };
}

/** The error of the signature (RFC 8945 section 3) that the server names; null: the response is signed by the key. */
export type TsigVerdict = null | 'BADSIG' | 'BADKEY' | 'BADTIME' | 'not signed' | 'not signed with the key';

const tsigErrors: Record<number, TsigVerdict> = { 16: 'BADSIG', 17: 'BADKEY', 18: 'BADTIME' };

/** Throws a RangeError if the response is cut off. */
export function verify(response: Buffer, key: TsigKey, requestMac: Buffer, nowSeconds: number): TsigVerdict {
  const tsig = findTsig(response);
  if (tsig === null) return 'not signed';
  const { start, data } = tsig;
  let at = skipName(data, 0);
  const time = data.subarray(at, at + 6);
  const fudge = data.readUInt16BE(at + 6);
  const macEnd = at + 10 + data.readUInt16BE(at + 8);
  const mac = data.subarray(at + 10, macEnd);
  at = macEnd;
  const [originalId, error, otherLength] = [0, 2, 4].map((offset) => data.readUInt16BE(at + offset)) as [
    number,
    number,
    number,
  ];
  const other = data.subarray(at + 6, at + 6 + otherLength);
  // Such a response is not signed, because the key is not known or its signature was wrong (section 5.3.2).
  if (error === 16 || error === 17) return tsigErrors[error]!;
  const message = Buffer.from(response.subarray(0, start));
  message.writeUInt16BE(originalId, 0);
  message.writeUInt16BE(message.readUInt16BE(10) - 1, 10);
  const own = macOf(key, [
    numbers16(requestMac.length),
    requestMac,
    message,
    ...variablesOf(key, time, fudge, error, other),
  ]);
  if (mac.length !== own.length || !timingSafeEqual(mac, own)) return 'not signed with the key';
  const isInTime = Math.abs(nowSeconds - time.readUIntBE(0, 6)) <= fudge;
  return tsigErrors[error] ?? (isInTime ? null : 'BADTIME');
}

/** The TSIG variables of section 4.3.3. */
function variablesOf(key: TsigKey, time: Buffer, fudge: number, error: number, other: Buffer): Buffer[] {
  return [
    nameBytes(key.name),
    numbers16(classes.ANY, 0, 0),
    nameBytes(algorithm),
    time,
    numbers16(fudge, error, other.length),
    other,
  ];
}

function macOf({ secret }: TsigKey, parts: Buffer[]): Buffer {
  return createHmac('sha256', secret).update(Buffer.concat(parts)).digest();
}

/** The TSIG record is the last one of the message (section 5.1). */
function findTsig(message: Buffer): { start: number; data: Buffer } | null {
  const [questions, ...counts] = [4, 6, 8, 10].map((at) => message.readUInt16BE(at)) as [number, ...number[]];
  let at = headerLength;
  for (let n = 0; n < questions; n++) at = skipName(message, at) + 4;
  let found: { start: number; data: Buffer } | null = null;
  for (let left = counts.reduce((sum, one) => sum + one, 0); left > 0; left--) {
    const start = at;
    at = skipName(message, at);
    const type = message.readUInt16BE(at);
    const end = at + 10 + message.readUInt16BE(at + 8);
    found = type === tsigType ? { start, data: message.subarray(at + 10, end) } : null;
    at = end;
  }
  return found;
}

/** The position after a name, which may end with a pointer (RFC 1035 section 4.1.4). */
function skipName(bytes: Buffer, start: number): number {
  for (let at = start; ; ) {
    const length = bytes.readUInt8(at);
    if (length >= 0xc0) return at + 2;
    at += 1 + length;
    if (length === 0) return at;
  }
}

/** Names are signed in lower case (RFC 8945 section 4.3.3). */
function nameBytes(name: string): Buffer {
  const labels = name.toLowerCase().split('.').filter(Boolean);
  return Buffer.concat([
    ...labels.flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, 'latin1')]),
    Buffer.alloc(1),
  ]);
}

function numbers16(...numbers: number[]): Buffer {
  const bytes = Buffer.alloc(2 * numbers.length);
  for (const [at, number] of numbers.entries()) bytes.writeUInt16BE(number, 2 * at);
  return bytes;
}

function timeBytes(seconds: number): Buffer {
  const bytes = Buffer.alloc(6);
  bytes.writeUIntBE(seconds, 0, 6);
  return bytes;
}
