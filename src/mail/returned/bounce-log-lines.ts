/** The mail log lines of returned mail: bounces, complaints and delay notices. */
import type { BouncedDelivery, BounceResult } from '#mail/returned/rows/record-bounces.ts';
import type { MailLog, MailLogLine, Verb } from '#platform/values/mail-log.ts';
import type { Complaint, Delay, ReportedFailure } from './parse-result.ts';

export type BounceNotice = Delay | ReportedFailure | Complaint;

export function logBounce(
  parts: {
    mailLog: MailLog;
    /** Logs mail that changes nothing; it does not belong in the mail log. */
    note(text: string): void;
  },
  to: BouncedDelivery,
  reading: BounceNotice,
  outcome: BounceResult | null,
): void {
  const { verb, what, rest } = lineOf(reading);
  const unchanged = outcome && typeof outcome === 'object' ? whyUnchanged(reading, outcome) : null;
  if (unchanged !== null) {
    parts.note(
      `returned mail about <${to.recipient}>, email ${to.emailId}, changes nothing, because ${unchanged}: ${what}`,
    );
    return;
  }
  const { emailId, orgId, recipient, domain: destination, from, tags, attempts: attempt } = to;
  parts.mailLog.write(verb, `to <${recipient}>: ${what}`, {
    emailId,
    orgId,
    recipient,
    destination,
    from,
    tags,
    attempt,
    ...rest,
  });
}

/** Null if the delivery's state has changed. */
function whyUnchanged(
  reading: BounceNotice,
  { status, transition }: Exclude<BounceResult, string>,
): string | null {
  if (!transition) return `the delivery is ${status}`;
  if (transition.event.type !== 'email.forward_failed' || reading.kind !== 'failed') return null;
  return `the address that failed is another one, ${reading.recipient ?? 'which the report does not name'}`;
}

function lineOf(reading: BounceNotice): { verb: Verb; what: string; rest: Partial<MailLogLine> } {
  const by = reading.reportedBy ? ` by ${reading.reportedBy}` : '';
  switch (reading.kind) {
    case 'delayed':
      return { verb: 'deferred', what: `delayed${by}: ${reading.words}`, rest: { reply: reading.words } };
    case 'failed': {
      const { diagnostic: reply, category } = reading.bounce;
      return { verb: 'bounced', what: `returned${by}: ${reply}`, rest: { reply, category } };
    }
    case 'complaint':
      return {
        verb: 'bounced',
        what: `a complaint (${reading.feedbackType})${by}`,
        rest: { category: 'complaint' },
      };
  }
}
