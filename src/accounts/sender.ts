/**
 * The sender of an email: a mailbox at a verified domain of the organization, which the API key can send from; and what the
 * domain decides about its mail.
 */
import type { DomainRecord } from '#accounts/rows/domains-table.ts';
import type { Stream } from '#accounts/rows/streams.ts';
import { mailboxCure, parseMailbox } from '#platform/values/address.ts';
import type { Mailbox } from '#platform/values/glossary.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { testDomain } from '#platform/values/test-route.ts';
import { allowedDomains, type Caller } from './api-keys.ts';

export function requireSender(text: string): Mailbox {
  const from = parseMailbox(text);
  if (from) return from;
  throw new Refusal(
    'BAD_REQUEST',
    `from: ${JSON.stringify(text.slice(0, 200))} is not a valid sender. Give an address, or Name <address>${mailboxCure(text)}.`,
  );
}

export function requireAllowedDomain(from: Mailbox, caller: Pick<Caller, 'scopes'>): void {
  const allowed = allowedDomains(caller);
  if (allowed.length === 0 || allowed.includes(from.domain)) return;
  throw new Refusal(
    'DOMAIN_NOT_ALLOWED',
    `This API key cannot send from ${from.domain}. It can send from ${allowed.join(', ')}.`,
  );
}

/** `registered` is asked for the organization's domains, which its own keys may know, only for a refusal. */
export async function requireVerified(
  from: Mailbox,
  domain: DomainRecord | null,
  registered: () => Promise<readonly string[]>,
): Promise<DomainRecord> {
  if (!domain && from.domain === testDomain)
    throw new Refusal(
      'DOMAIN_NOT_FOUND',
      `Only test keys (em_test_…) can send from ${testDomain}. Send from a domain of this organization.`,
    );
  if (!domain) {
    throw new Refusal(
      'DOMAIN_NOT_FOUND',
      `The domain ${from.domain} is not registered in this organization. ${namesOf(await registered())} ${registerIt(from.domain)}`,
    );
  }
  if (domain.status !== 'verified') {
    throw new Refusal(
      'DOMAIN_NOT_VERIFIED',
      `The domain ${domain.name} is not verified yet. Publish its DKIM record, then verify it: postern domain verify ${domain.name}, or on its page in the dashboard.`,
    );
  }
  return domain;
}

/** How many names a refusal needs: one more than it shows. */
export const namesForRefusal = 6;

function namesOf(registered: readonly string[]): string {
  if (registered.length === 0) return 'It has no domains yet.';
  const named = registered.slice(0, namesForRefusal - 1).join(', ');
  return `Its domains: ${named}${registered.length >= namesForRefusal ? ' and more' : ''}.`;
}

/** `domain` is part of an address that was given, and is a name that DNS can have. */
function registerIt(domain: string): string {
  return `Register it in the dashboard, with postern domain add ${domain}, or with POST /api/public/domains and {"name": "${domain}"}.`;
}

/** The keys that sign mail from the domain. */
export function signerOf({ name, dkimSelector, dkimPrivateKey, otherKeys }: DomainRecord) {
  const first = { domain: name, selector: dkimSelector, sealedKey: dkimPrivateKey };
  const other = otherKeys.find(({ status }) => status === 'signing');
  return other ? { ...first, second: { selector: other.selector, sealedKey: other.privateKey! } } : first;
}

/** In each member, the request's setting overrides the stream's, and that the domain's. */
export function effectiveTracking(
  tracking: { openTracking?: boolean; clickTracking?: boolean },
  stream: Stream | null,
  domain: DomainRecord,
) {
  return {
    openTracking: tracking.openTracking ?? stream?.openTracking ?? domain.openTracking,
    clickTracking: tracking.clickTracking ?? stream?.clickTracking ?? domain.clickTracking,
  };
}

export function requireStream(name: string, stream: Stream | null): Stream {
  if (stream) return stream;
  const message = `stream: the organization has no stream ${JSON.stringify(name.slice(0, 100))}. Create it first, or leave stream out.`;
  const issue = {
    code: 'custom',
    expected: 'the name of a stream',
    received: name.slice(0, 100),
    path: ['stream'],
    message,
  };
  throw new Refusal('VALIDATION_ERROR', message, { issues: [issue] });
}
