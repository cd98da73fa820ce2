/** What the mail log says of returned mail: a bounce, a complaint, or that somebody is still trying. */
import type { ReturnedDelivery, ReturnedOutcome } from '../db/bounces/returned-mail.ts';
import type { MailLog, MailLogLine, Verb } from '../mail/mail-log.ts';
import type { Complaint, Delay, Failure } from './parse/parse-result.ts';

export interface BounceLogParts {
  mailLog: MailLog;
  /** What changes nothing is no mail log's. */
  note(text: string): void;
}

export type BounceFacts = Delay | Failure | Complaint;

export function logReturned(
  parts: BounceLogParts,
  to: ReturnedDelivery,
  reading: BounceFacts,
  outcome: ReturnedOutcome | null,
): void {
  const { verb, what, rest } = lineOf(reading);
  if (outcome && typeof outcome === 'object' && !outcome.move) {
    const why = `changes nothing, for it is ${outcome.status}`;
    parts.note(`mail about <${to.recipient}>, email ${to.emailId}, ${why}: ${what}`);
    return;
  }
  const { emailId, orgId, recipient, domain: destination, from, tags, attempts: attempt } = to;
  parts.mailLog.write(verb, `to <${recipient}>: ${what}`, {
    ...{ emailId, orgId, recipient, destination, from, tags, attempt },
    ...rest,
  });
}

function lineOf(reading: BounceFacts): { verb: Verb; what: string; rest: Partial<MailLogLine> } {
  const by = reading.reportedBy ? ` by ${reading.reportedBy}` : '';
  switch (reading.is) {
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
