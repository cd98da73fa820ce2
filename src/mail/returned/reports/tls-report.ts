/**
 * Parses TLS reports (RFC 8460): a sender's statistics about TLS connections to a domain's mail hosts under MTA-STS or DANE.
 * Most reports cover one policy domain. If there are several, the first one is the report's domain, and all are counted.
 */
import { z } from 'zod';
import type { ReportedTlsFailure, TlsReport } from '#mail/returned/aggregate-report.ts';
import { toDomain } from '#platform/values/address.ts';
import { hasMoreThan, oneLine } from './unpack.ts';

const maxFailures = 100;
/** Members and elements; a failure has about ten. A larger report is kept as a letter. */
const maxValues = 100_000;

const word = z.string().transform(oneLine).catch('');
const count = z
  .preprocess((value) => (typeof value === 'string' ? Number(value) : value), z.int().nonnegative())
  .catch(0);
const time = z
  .string()
  .transform((text) => Date.parse(text) || 0)
  .catch(0);

const details = z.object({
  'result-type': word,
  'receiving-mx-hostname': word,
  'failure-reason-code': word,
  'failed-session-count': count,
});

const policy = z.object({
  policy: z.object({ 'policy-type': word, 'policy-domain': word }),
  summary: z
    .object({ 'total-successful-session-count': count, 'total-failure-session-count': count })
    .catch({ 'total-successful-session-count': 0, 'total-failure-session-count': 0 }),
  'failure-details': z.array(details).catch([]),
});

const document = z.object({
  'organization-name': word,
  'report-id': word,
  'contact-info': word,
  'date-range': z
    .object({ 'start-datetime': time, 'end-datetime': time })
    .catch({ 'start-datetime': 0, 'end-datetime': 0 }),
  policies: z.array(policy).min(1).max(1000),
});

/** The report, or the reason why the text is none. */
export function readTls(json: string): TlsReport | string {
  if (hasMoreThan(maxValues, '{[,', json)) return `the JSON has more than ${maxValues} values`;
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    return `the JSON cannot be parsed: ${(error as Error).message}`;
  }
  const read = document.safeParse(withPolicies(value, maxLevels) ?? value);
  if (!read.success) return 'the JSON has no "policies" with a policy';
  const domain = toDomain(read.data.policies[0]!.policy['policy-domain'].toLowerCase().replace(/\.$/, ''));
  if (domain === null) return 'the first policy has no valid "policy-domain"';
  const { policies, 'date-range': range, ...about } = read.data;
  const summaries = policies.map(({ summary }) => summary);
  const sum = (counts: number[]) => counts.reduce((all, one) => all + one, 0);
  const failed = sum(summaries.map((one) => one['total-failure-session-count']));
  return {
    kind: 'tls',
    domain,
    reporter: about['organization-name'] || about['contact-info'] || 'unknown',
    reportId: about['report-id'],
    beginsAt: range['start-datetime'],
    endsAt: range['end-datetime'],
    policy: policies[0]!.policy['policy-type'] || null,
    totals: { sessions: failed + sum(summaries.map((one) => one['total-successful-session-count'])), failed },
    failures: policies
      .flatMap((one) => one['failure-details'].map(failureFrom))
      .sort((a, b) => b.sessions - a.sessions)
      .slice(0, maxFailures),
  };
}

function failureFrom(one: z.output<typeof details>): ReportedTlsFailure {
  return {
    type: one['result-type'],
    sessions: one['failed-session-count'],
    host: one['receiving-mx-hostname'] || null,
    reason: one['failure-reason-code'] || null,
  };
}

/** Some reporters wrap it in members or an array of their own. */
const maxLevels = 4;

function withPolicies(value: unknown, levels: number): object | null {
  if (typeof value !== 'object' || value === null || levels === 0) return null;
  if ('policies' in value) return value;
  for (const inner of Object.values(value).slice(0, 20)) {
    const found = withPolicies(inner, levels - 1);
    if (found) return found;
  }
  return null;
}
