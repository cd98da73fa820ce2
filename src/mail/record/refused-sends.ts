/**
 * The mail log's lines on refused sends: for each of the first recipients, the code, the key and the reason. They are the answer
 * to "why did she get nothing?" for mail that never became an email. A caller in a loop must not fill the log, so that an
 * organization has a number of lines a minute; a last line counts what was not logged.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '#platform/base/clock.ts';
import { domainOf } from '#platform/values/address.ts';
import type { MailLog } from '#platform/values/mail-log.ts';
import { type Refusal, statusOf } from '#platform/values/refusal.ts';

/** The known facts about a refused send. */
export interface RefusedSend {
  /** The key's organization, id and label. */
  sender: { orgId: string; keyId: string | null; keyLabel?: string };
  refusal: Refusal;
  /** Addresses, as far as the request could be read. */
  recipients: readonly string[];
  requestId?: string;
}

const windowMs = 60_000;
const maxLinesPerWindow = 60;
const maxOrganizations = 1000;
const maxNamed = 10;
const maxReasonLength = 500;

interface Window {
  endsAt: number;
  lines: number;
  /** Refused sends without a line. */
  unlogged: number;
}

export function createRefusedSends(mailLog: MailLog, clock: Clock): (send: RefusedSend) => void {
  const windows = new LRUCache<string, Window>({ max: maxOrganizations });

  function windowOf(orgId: string): Window {
    const now = clock.now();
    const current = windows.get(orgId);
    if (current && now < current.endsAt) return current;
    if (current && current.unlogged > 0)
      mailLog.write('refused', `${current.unlogged} more sends within a minute, which are not logged`, {
        orgId,
      });
    const next = { endsAt: now + windowMs, lines: 0, unlogged: 0 };
    windows.set(orgId, next);
    return next;
  }

  return ({ sender: { orgId, keyId, keyLabel }, refusal, recipients, requestId }) => {
    const window = windowOf(orgId);
    if (window.lines >= maxLinesPerWindow) {
      window.unlogged += 1;
      return;
    }
    const { code } = refusal;
    const key = keyLabel === undefined ? '' : ` key ${keyLabel}`;
    const reply = reasonOf(refusal);
    const line = { orgId, requestId, category: code, reply, ...(keyId !== null && { keyId }) };
    const named = recipients.slice(0, maxNamed);
    const more = recipients.length - named.length;
    const reason = `${statusOf[code]} ${code}${key}: ${reply}${more > 0 ? ` (and ${more} more recipients)` : ''}`;
    window.lines += Math.max(named.length, 1);
    if (named.length === 0) mailLog.write('refused', `a send ${reason}`, line);
    for (const recipient of named)
      mailLog.write('refused', `<${recipient}> ${reason}`, {
        ...line,
        recipient,
        destination: domainOf(recipient) ?? undefined,
      });
  };
}

function reasonOf({ message, issues }: Refusal): string {
  const [first] = issues;
  const whole = first && !message.includes(first.message) ? `${message} ${first.message}` : message;
  return whole.slice(0, maxReasonLength);
}

/** The members of all our ways in that hold recipients. */
const recipientMembers = ['to', 'cc', 'bcc', 'To', 'Cc', 'Bcc'];
/** A valid one is shorter. The rest of a longer text is not read. */
const maxTextLength = 2000;

/** The first addresses in a body that was refused, perhaps because it is not valid: nothing about it is certain. */
export function recipientsIn(body: unknown): string[] {
  const bodies = [body, ...listOf(memberOf(body, 'personalizations'))];
  const fields = bodies.flatMap((one) => recipientMembers.map((name) => memberOf(one, name)));
  const texts = fields.flatMap(listOf).map((value) => memberOf(value, 'email') ?? value);
  const found = texts.filter((text) => typeof text === 'string').flatMap(addressesIn);
  return [...new Set(found)].slice(0, maxNamed);
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value.slice(0, maxNamed) : [value];
}

function memberOf(value: unknown, name: string): unknown {
  return value !== null && typeof value === 'object' && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}

function addressesIn(text: string): string[] {
  const words = text.slice(0, maxTextLength).split(/[\s<>,;"]/);
  return words.filter((word) => domainOf(word) !== null).slice(0, maxNamed);
}
