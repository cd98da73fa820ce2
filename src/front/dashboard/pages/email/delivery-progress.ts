/** The live part of an email's page: each delivery's progress, its explanation, its attempts with transcripts; the events. */

import { statusWords } from '#front/dashboard/email-status.ts';
import { legible } from '#front/dashboard/legible.ts';
import { exactly } from '#front/dashboard/number-format.ts';
import { type AttemptRecord, type EmailRecord, listAttempts } from '#mail/record/rows/emails.ts';
import { tlsWords } from '#mail/record/tls-words.ts';
import { type Remedies, type WhyInput, why } from '#operate/explain/why.ts';
import { readWhyInputs } from '#operate/explain/why-input.ts';
import { relative, span } from '#platform/base/span.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { TranscriptLine } from '#platform/values/glossary.ts';
import { isFinal, statusOf } from '#platform/values/states.ts';
import { journeyOf } from './journey.ts';
import { timelineOf } from './timeline.ts';

const remedies: Remedies = {
  release: () => '',
  report: () => '',
  unsuppress: () => 'To send to the address again, remove it under Suppressions.',
  grant: () => 'The Credits page shows what is left and when the quota renews. This email is not sent later.',
  source: () => 'The operator of this server can fix that.',
  verify: '(see its DNS records under Domains)',
  examine: () => '(see its DNS records under Domains)',
  doctor: 'The operator of this server can check under Doctor whether it is on a blocklist.',
};

/** How often the page updates: often while an attempt is under way or about to begin. */
const soonMs = 1000;
const laterMs = 5000;
const maxAttempts = 40;

export async function readProgress(db: Db, email: EmailRecord, now: number) {
  const attempts = await listAttempts(db, email.id);
  const details = await readWhyInputs(db, email, { attempts, now });
  return {
    status: statusWords[statusOf(email.deliveries.map(({ status }) => status))],
    recipients: details.map((each) => present(each, email, attempts)),
    events: timelineOf(email),
    intervalMs: intervalMs(email),
  };
}

/** Null if all deliveries are final. */
function intervalMs({ deliveries }: EmailRecord): number | null {
  if (deliveries.every(({ status }) => isFinal(status))) return null;
  return deliveries.some(({ status }) => status === 'queued' || status === 'sending') ? soonMs : laterMs;
}

function present(details: WhyInput, email: EmailRecord, all: AttemptRecord[]) {
  const { delivery, last, now } = details;
  const { id, kind, recipient, status, opens, clicks } = delivery;
  const own = all.filter(({ deliveryId }) => deliveryId === id);
  const when = (time: number) => `${exactly(time)} (${relative(time, now)})`;
  const steps = journeyOf({ delivery, last, createdAt: email.createdAt, now });
  return {
    id,
    opens,
    clicks,
    status: statusWords[status],
    isFinal: isFinal(status),
    address: legible(recipient),
    /** Recipients in To have no mark. */
    list: { to: '', cc: 'Cc', bcc: 'Bcc' }[kind],
    steps: steps.map((step) => ({ ...step, detail: legible(step.detail) })),
    why: legible(why(details, when, remedies)),
    attempts: own.slice(-maxAttempts).reverse().map(presentAttempt),
    earlier: Math.max(own.length - maxAttempts, 0),
    /** Attempts are deleted after their retention; their number is kept. */
    forgotten: delivery.attempts - own.length,
  };
}

const outcomes = { delivered: 'good', deferred: 'warn', bounced: 'bad' } as const;

function presentAttempt(attempt: AttemptRecord) {
  const { deliveryId, number, startedAt, endedAt, verdict, mx, tls, transcript } = attempt;
  const details = [
    span(endedAt - startedAt),
    mx ? `${mx.host} [${mx.address}]:${mx.port}` : 'no host',
    ...(mx ? [tls ? tlsWords(tls) : 'not encrypted'] : []),
    ...(verdict.category ? [`${verdict.category}, ${verdict.fault}`] : []),
    ...(verdict.rule ? [`rule ${verdict.rule}`] : []),
    ...(verdict.possibleDuplicate ? ['may have been delivered'] : []),
  ];
  return {
    number,
    startedAt,
    id: `attempt-${deliveryId}-${number}`,
    badge: { text: statusWords[verdict.outcome].text, tone: outcomes[verdict.outcome] },
    facts: details.map(legible),
    lines: transcript.flatMap(linesOf),
    diagnostic: transcript.some(({ text }) => text.includes(verdict.diagnostic))
      ? ''
      : legible(verdict.diagnostic),
  };
}

const speakers = { client: 'We', server: 'They', note: 'Note' } as const;

/** A reply of several lines is one line of the transcript. */
function linesOf({ ms, from, text }: TranscriptLine) {
  return text
    .trimEnd()
    .split(/\r?\n/)
    .map((line) => ({ ms, from, speaker: speakers[from], text: legible(line) }));
}
