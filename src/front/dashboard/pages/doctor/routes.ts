/**
 * The checks of `postern doctor`. They run on request, in the background and one run at a time, while the page shows the
 * progress. The last result is kept until the next run or a restart.
 */
import { z } from 'zod';
import { checkForm, type Errors, optional, parsedBy, valuesOf } from '#front/dashboard/forms.ts';
import {
  type DashboardPage,
  fragment,
  type PageAnswer,
  type PageParts,
  redirect,
  show,
  type UserVisit,
} from '#front/dashboard/page.ts';
import { counted, type Finding, type FindingStatus } from '#operate/doctor/finding.ts';
import { capital } from '#platform/base/capital.ts';
import { toDomain } from '#platform/values/address.ts';

export const doctorPage: DashboardPage = {
  operator: {
    'GET /dashboard/doctor': (visit, parts) => doctor(visit, parts),
    'POST /dashboard/doctor': start,
  },
};

const words: Record<FindingStatus, { label: string; tone: string }> = {
  failure: { label: 'Failure', tone: 'bad' },
  warning: { label: 'Warning', tone: 'warn' },
  ok: { label: 'OK', tone: 'good' },
  skipped: { label: 'Unknown', tone: 'quiet' },
};

function doctor(
  visit: UserVisit,
  { operatorJobs, isDevelopment }: PageParts,
  errors: Errors = {},
): PageAnswer {
  const run = operatorJobs.doctor.last();
  const isRunning = run?.endedAt === null;
  const isPoll = visit.context.get('hx-request') === 'true';
  const findings = run?.result ?? [];
  const data = { run, isRunning, groups: groupsOf(findings), counts: countsOf(findings) };
  if (isPoll) return fragment('doctor/result', data);
  const values = visit.context.method === 'POST' ? valuesOf(visit.form) : {};
  return show('doctor/doctor', 'Doctor', { ...data, values, errors, isDevelopment });
}

const fields = z.object({
  domain: optional(parsedBy(toDomain, 'Enter a domain name, such as example.com.')),
});

function start(visit: UserVisit, parts: PageParts): PageAnswer {
  const checked = checkForm(visit.form, fields);
  if (!checked.ok) return doctor(visit, parts, checked.errors);
  // If a run is under way, the page shows that one.
  parts.operatorJobs.doctor.start(checked.values.domain ?? null);
  return redirect('/dashboard/doctor');
}

/** Grouped by subject, in the order in which a mail meets them. */
function groupsOf(findings: Finding[]) {
  const groups = Map.groupBy(findings, ({ subject }) => subject);
  return [...groups].map(([subject, all]) => ({
    // Not a host name.
    subject: subject.includes(' ') ? capital(subject) : subject,
    findings: all.map((finding) => ({ ...finding, ...words[finding.verdict] })),
  }));
}

function countsOf(findings: Finding[]) {
  return (Object.keys(words) as FindingStatus[]).map((verdict) => {
    const { label, tone } = words[verdict];
    const count = findings.filter((one) => one.verdict === verdict).length;
    return { verdict, tone, count, text: counted(count, verdict === 'ok' ? label : label.toLowerCase()) };
  });
}
