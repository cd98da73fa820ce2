/** Writes the mail log's lines (platform/values/mail-log.ts): accepted, attempted, and the outcomes. */

import type { Transition } from '#mail/deliver/transition.ts';
import { elapsed, iso, isoOrNull } from '#platform/base/clock.ts';
import { domainOf } from '#platform/values/address.ts';
import type { Delivery, Peer, RecipientKind, TlsUsed } from '#platform/values/glossary.ts';
import type { MailLog, Verb } from '#platform/values/mail-log.ts';
import { oneClickWarning } from '#platform/values/one-click.ts';

/** The accepted send, as far as the log needs it. */
interface AcceptedSend {
  emailId: string;
  orgId: string;
  messageId: string;
  from: string;
  tags: Record<string, string>;
  stream?: string | null;
  recipients: { kind: RecipientKind; address: string; domain: string; deliveryId: string }[];
  /** The number of tracked links if the mail has more than that; else null. */
  trackedLinks: number | null;
  scheduledAt: number | null;
}

/** The recipients as the response names them. */
type SendResult = Record<'accepted' | 'suppressed' | 'insufficientCredit', string[]>;

/** The request of an accepted send. */
interface SendOrigin {
  requestId: string;
  /** Names of members that were ignored. */
  ignored?: string | undefined;
  /** The repairs of a message that was given whole. */
  repaired?: string | undefined;
  lacksOneClick?: boolean;
}

/** One SMTP session, or the failure to start one. */
interface Session {
  /** Null if no host was connected. */
  peer: Peer | null;
  diagnostic: string;
  tls: TlsUsed | null;
  ms: number;
}

/** One line, whatever the number of recipients: a client that repeats a send may do so often. */
export function logRepeated(
  mailLog: MailLog,
  { orgId, recipients, from }: AcceptedSend,
  { emailId }: { emailId: string },
  { requestId }: SendOrigin,
): void {
  const address = recipients[0]?.address ?? '';
  const others = recipients.length > 1 ? ` to ${recipients.length} recipients` : '';
  mailLog.write(
    'repeated',
    `<${address}> a repeat of email ${emailId}${others} was ignored; nothing was sent or charged`,
    {
      emailId,
      orgId,
      recipient: address,
      from,
      requestId,
    },
  );
}

export function logAccepted(
  mailLog: MailLog,
  send: AcceptedSend,
  { accepted, suppressed, insufficientCredit }: SendResult,
  { requestId, ignored, repaired, lacksOneClick }: SendOrigin,
): void {
  const links = send.trackedLinks === null ? '' : `; only the first ${send.trackedLinks} links are tracked`;
  const time = send.scheduledAt === null ? '' : `; scheduled for ${iso(send.scheduledAt)}`;
  const bulk = lacksOneClick ? `; ${oneClickWarning}` : '';
  const notes = `${time}${links}${bulk}${note('ignored', ignored)}${note('repaired', repaired)}`;
  const addresses = new Set(accepted);
  for (const { kind, address, domain, deliveryId } of send.recipients) {
    if (!addresses.has(address)) continue;
    const list = kind === 'to' ? '' : ` (${kind})`;
    mailLog.write('accepted', `for <${address}>${list} from ${send.from}${notes}`, {
      emailId: send.emailId,
      orgId: send.orgId,
      recipient: address,
      ...(kind !== 'to' && { kind }),
      destination: domain,
      from: send.from,
      tags: send.tags,
      ...(send.stream && { stream: send.stream }),
      deliveryId,
      messageId: send.messageId,
      requestId,
      ...(ignored !== undefined && { ignored }),
    });
  }
  const skipped = { suppressed, insufficientCredit };
  for (const [category, list] of Object.entries(skipped))
    for (const recipient of list)
      mailLog.write('refused', `<${recipient}> ${skippedBecause[category as keyof typeof skipped]}`, {
        emailId: send.emailId,
        orgId: send.orgId,
        recipient,
        destination: domainOf(recipient) ?? undefined,
        from: send.from,
        requestId,
        category,
      });
}

/** Why a recipient is skipped while others are accepted. */
const skippedBecause = {
  suppressed: 'is suppressed; the other recipients were accepted',
  insufficientCredit: 'was skipped for lack of credits; other recipients were accepted',
};

const note = (what: string, list: string | undefined) => (list === undefined ? '' : `; ${what}: ${list}`);

export function logAttempted(
  mailLog: MailLog,
  delivery: Delivery,
  { peer, diagnostic: reply, tls, ms }: Session,
): void {
  const where = peer ? `${peer.host} [${peer.address}]:${peer.port}` : delivery.domain;
  mailLog.write('attempted', `${where} for <${delivery.recipient}>: ${reply}`, {
    ...namesOf(delivery),
    host: peer?.host ?? null,
    address: peer?.address ?? null,
    reply,
    tls: tls?.protocol ?? null,
    cipher: tls?.cipher ?? null,
    group: tls?.group ?? null,
    ms: Math.round(ms),
  });
}

export function logOutcome(
  mailLog: MailLog,
  { delivery, attempt, attempts, status, dueAt }: Transition,
): void {
  const { verdict, mx, tls } = attempt;
  const expired = status === 'expired';
  const verb: Verb = expired ? 'bounced' : verdict.outcome;
  const where = mx ? ` by ${mx.host} [${mx.address}]` : '';
  const why = expired ? `expired: ${verdict.diagnostic}` : verdict.diagnostic;
  const nextAttemptAt = isoOrNull(dueAt);
  const next = nextAttemptAt === null ? '' : `; next attempt at ${nextAttemptAt}`;
  mailLog.write(verb, `to <${delivery.recipient}>${where}: ${why}${next}`, {
    ...namesOf(delivery),
    attempt: attempts,
    host: mx?.host ?? null,
    address: mx?.address ?? null,
    reply: verdict.diagnostic,
    tls: tls?.protocol ?? null,
    cipher: tls?.cipher ?? null,
    group: tls?.group ?? null,
    ms: elapsed(attempt.startedAt, attempt.endedAt),
    category: expired ? 'expired' : verdict.category,
    nextAttemptAt,
  });
}

function namesOf(delivery: Delivery) {
  return {
    emailId: delivery.emailId,
    orgId: delivery.orgId,
    recipient: delivery.recipient,
    destination: delivery.domain,
    from: delivery.from,
    deliveryId: delivery.id,
    tags: delivery.tags,
    ...(delivery.stream && { stream: delivery.stream }),
    attempt: delivery.attempts + 1,
  };
}
