/**
 * Tracking links. A link itself contains everything that a visit needs, signed, so that composing writes no row and a
 * link works for as long as its key is configured. Only this service can create one, so there is no open redirect and no forged
 * open.
 *
 *   BASE/t/o/TOKEN   the pixel: an open        BASE/t/c/TOKEN   a link: a click        BASE/t/u/TOKEN   unsubscribes
 *
 *   TOKEN: base64url of  version (1 byte) | key id (1) | kind (1) | delivery id (16) | host (8) | target URL, UTF-8 | tag (16)
 *
 * `host` is a hash of the host that the link is for and of the organization that made it, so that it redirects at no other
 * customer's host, not even at one that the organization once had. Version 2 has the host alone, version 1 none.
 *
 * The tag is HMAC-SHA256, cut to 128 bits, over all that goes before it. The key id is read off the key, so that
 * links made under an earlier secret go on working for as long as that secret is kept.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { parse, stringify } from 'uuid';
import { type Hmac, hmacSha256 } from '#platform/base/hmac.ts';
import { type DerivedKeys, deriveKey, keysOf, type Secrets } from '#platform/base/secrets.ts';

export type VisitKind = 'open' | 'click';
type LinkKind = VisitKind | 'unsubscribe';

/** The contents of a genuine link. The target of a click is an http or https URL, that of `unsubscribe` a subscription. */
export interface LinkRead {
  deliveryId: string;
  target: string;
}

export interface TrackingLinks {
  /** Creates the links of an organization's delivery. `base` has no slash at its end. */
  tracker(
    base: string,
    orgId: string,
    deliveryId: string,
  ): { pixel(): string; link(target: string): string; unsubscribe(subscription: string): string };
  /** Null if we did not create the link, or it was altered. */
  read(kind: LinkKind, token: string): LinkRead | null;
  /** Whether a genuine link was made for this host, by one of the organizations. */
  isFor(host: string, orgIds: readonly string[], token: string): boolean;
}

const version = 3;
/** The links of mails before the organization was in a link. */
const versionOfAnyone = 2;
/** The links of mails before the host was in a link. */
const versionWithoutHost = 1;
const kinds: Record<LinkKind, { code: number; path: string }> = {
  open: { code: 0, path: '/t/o' },
  click: { code: 1, path: '/t/c' },
  unsubscribe: { code: 2, path: '/t/u' },
};
const headLength = 19;
const hostLength = 8;
const tagLength = 16;

/** The current secret signs; links signed with an earlier secret are still read. */
export function createTrackingLinks(secrets: Secrets): TrackingLinks {
  const keys = keysOf(secrets, macKey);

  /** Most mails have the same one as the mail before. */
  let hashed = { base: '', orgId: '', hash: Buffer.alloc(0) };

  function hashOfBase(base: string, orgId: string): Buffer {
    if (hashed.base !== base || hashed.orgId !== orgId)
      hashed = { base, orgId, hash: hashOf(`${new URL(base).hostname} ${orgId}`) };
    return hashed.hash;
  }

  function link(base: string, orgId: string, kind: LinkKind, deliveryId: string, target: string): string {
    const current = keys.current();
    const head = Buffer.from([version, current.id, kinds[kind].code, ...parse(deliveryId)]);
    const payload = Buffer.concat([head, hashOfBase(base, orgId), Buffer.from(target)]);
    const token = Buffer.concat([payload, tagOf(payload, current)]).toString('base64url');
    return `${base}${kinds[kind].path}/${token}`;
  }

  return {
    tracker: (base, orgId, deliveryId) => ({
      pixel: () => link(base, orgId, 'open', deliveryId, ''),
      link: (target) => link(base, orgId, 'click', deliveryId, target),
      unsubscribe: (subscription) => link(base, orgId, 'unsubscribe', deliveryId, subscription),
    }),
    read(kind, token) {
      const payload = genuine(token, keys);
      if (payload?.[2] !== kinds[kind].code || !isKnown(payload)) return null;
      const target = payload.subarray(targetStart(payload)).toString();
      if (kind === 'click' && !isWebAddress(target)) return null;
      return { deliveryId: stringify(payload.subarray(3, headLength)), target };
    },
    isFor(host, orgIds, token) {
      const payload = genuine(token, keys);
      if (payload === null || !hasHost(payload)) return payload?.[0] === versionWithoutHost;
      const names = payload[0] === version ? orgIds.map((orgId) => `${host} ${orgId}`) : [host];
      const hash = payload.subarray(headLength, targetStart(payload));
      return names.some((name) => hash.equals(hashOf(name)));
    },
  };
}

const hasHost = ([first]: Buffer) => first === version || first === versionOfAnyone;

const isKnown = (payload: Buffer) =>
  payload[0] === versionWithoutHost || (hasHost(payload) && payload.length >= headLength + hostLength);

const targetStart = (payload: Buffer) => headLength + (hasHost(payload) ? hostLength : 0);

const hashOf = (name: string) => createHash('sha256').update(name).digest().subarray(0, hostLength);

interface Key {
  id: number;
  hmac: Hmac;
}

function macKey(secret: string): Key {
  const bytes = deriveKey(secret, 'tracking');
  return { id: createHash('sha256').update(bytes).digest()[0]!, hmac: hmacSha256(bytes) };
}

function tagOf(payload: Buffer, key: Key): Buffer {
  return key.hmac(payload).subarray(0, tagLength);
}

/** The payload of a token if its tag is correct, else null. */
function genuine(token: string, keys: DerivedKeys<Key>): Buffer | null {
  const bytes = Buffer.from(token, 'base64url');
  // Node ignores invalid characters, and the last character has unused bits: only the canonical spelling is accepted.
  if (bytes.length < headLength + tagLength || bytes.toString('base64url') !== token) return null;
  const payload = bytes.subarray(0, -tagLength);
  const tag = bytes.subarray(-tagLength);
  return keys.find((key) =>
    key.id === payload[1] && timingSafeEqual(tag, tagOf(payload, key)) ? payload : null,
  );
}

function isWebAddress(target: string): boolean {
  return /^https?:\/\//i.test(target) && URL.canParse(target);
}
