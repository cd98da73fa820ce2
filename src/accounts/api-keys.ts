/**
 * API keys: `em_`, or `em_test_` for test mail, and 256 random bits, shown once, stored as their SHA-256. Scopes say what a
 * key may do. `domain_scope:D` restricts the sender domain and grants nothing by itself.
 */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { KeyInUse } from '#accounts/rows/keys.ts';
import type { Pause } from '#accounts/rows/organizations.ts';
import { toDomain } from '#platform/values/address.ts';
import { trimBlanks, withoutHidden } from '#platform/values/hidden-characters.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { pausedMessage } from './create-organization.ts';
import type { RequestLimits } from './limits.ts';

export const grants = ['email:send', 'email:read', 'received:read', 'full_access'] as const;
export type Grant = (typeof grants)[number];

const domainScope = 'domain_scope:';

/** The organization and the rights of the key that a request was made with. */
export interface Caller {
  keyId: string;
  keyLabel: string;
  orgId: string;
  scopes: string[];
  limits: RequestLimits;
  /** A send with unknown members is refused. */
  strict: boolean;
  /** Its mail is test mail (platform/values/test-route.ts). */
  isTest: boolean;
  /** Of mail that names none; null: `transactional`. */
  stream?: string | null;
  /** The organization has streams, which tags and categories of other services can name. */
  hasStreams?: boolean | undefined;
  /** Set if the organization is paused; then no grant is given. */
  pause: Pause | null;
}

export function newKey({ isTest = false } = {}): { key: string; hash: string; hint: string } {
  const prefix = isTest ? 'em_test_' : 'em_';
  const key = `${prefix}${randomBytes(32).toString('base64url')}`;
  return { key, hash: hashOf(key), hint: key.slice(0, prefix.length + 6) };
}

/** Null if the key is malformed, unknown, revoked or past its end. */
export async function findCaller(
  key: string,
  findByHash: (hash: string) => Promise<KeyInUse | null>,
  now: number,
): Promise<Caller | null> {
  if (!/^em_[\w-]{16,200}$/.test(key)) return null;
  const hashed = hashOf(key);
  const record = await findByHash(hashed);
  if (!record || record.revokedAt !== null) return null;
  if (record.endsAt !== null && record.endsAt <= now) return null;
  // The index has found the hash; this comparison in constant time keeps our code free of timing differences.
  if (!timingSafeEqual(Buffer.from(record.hash), Buffer.from(hashed))) return null;
  const { id: keyId, label: keyLabel, orgId, scopes, limits, strict, isTest, pause } = record;
  const caller = { keyId, keyLabel, orgId, scopes, limits, strict, isTest, pause };
  // A stream of a key is not removed, so without streams it has none.
  return record.hasStreams ? { ...caller, stream: record.stream, hasStreams: true } : caller;
}

function hashOf(key: string): string {
  return hash('sha256', key);
}

export function requireGrant(caller: Caller, grant: Grant): void {
  requireNotPaused(caller.pause);
  if (!mayDo(caller, grant)) throw new Refusal('FORBIDDEN', `The API key lacks the scope ${grant}.`);
}

export function requireNotPaused(pause: Pause | null): void {
  if (pause) throw new Refusal('FORBIDDEN', pausedMessage(pause));
}

export function mayDo(caller: Caller, grant: Grant): boolean {
  if (caller.pause) return false;
  return caller.scopes.includes(grant) || caller.scopes.includes('full_access');
}

/**
 * Checks a key for management calls. A key restricted to domains is refused: it could create a key without the restriction. A test
 * key manages test keys only (`of`), because all else that it could change or read is about live mail.
 */
export function requireManager(caller: Caller, of: 'keys' | 'all' = 'all'): void {
  requireGrant(caller, 'full_access');
  if (caller.isTest && of !== 'keys') {
    throw new Refusal(
      'FORBIDDEN',
      'This is a test key: it sends, reads, moves and cancels test mail, and manages test keys. Use a live key with full_access.',
    );
  }
  if (allowedDomains(caller).length === 0) return;
  throw new Refusal(
    'FORBIDDEN',
    'The API key is restricted to domains. Use a key without a domain_scope to manage the organization.',
  );
}

/** The domains that the key is restricted to; empty means no restriction. */
export function allowedDomains(caller: Pick<Caller, 'scopes'>): string[] {
  return caller.scopes
    .filter((scope) => scope.startsWith(domainScope))
    .map((scope) => scope.slice(domainScope.length));
}

/** The scopes in canonical form, or what is wrong with the first invalid one. */
export function parseScopes(scopes: string[]): string[] | { problem: string } {
  const parsed = new Set<string>();
  for (const scope of scopes) {
    if (scope.startsWith(domainScope)) {
      const name = trimBlanks(scope.slice(domainScope.length));
      const domain = toDomain(name);
      if (!domain)
        return { problem: `${domainScope}${name}: "${name}" is not a domain name${withoutHidden(name)}` };
      parsed.add(domainScope + domain);
    } else if ((grants as readonly string[]).includes(scope)) {
      parsed.add(scope);
    } else {
      return {
        problem: `"${scope}" is not a scope; there are ${grants.join(', ')} and ${domainScope}<domain>`,
      };
    }
  }
  return [...parsed];
}
