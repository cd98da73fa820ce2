/** A form that sends one test email through the code of the API, and then shows the email's page. */
import { z } from 'zod';
import { type DomainRecord, listDomains } from '#accounts/rows/domains-table.ts';
import { sendSchema, toRequest } from '#front/api/send/schema.ts';
import { checkForm, type Errors, oneLine, problemWith, valuesOf } from '#front/dashboard/forms.ts';
import {
  type DashboardPage,
  type OrgVisit,
  type PageAnswer,
  type PageParts,
  redirect,
  show,
} from '#front/dashboard/page.ts';
import { idempotencyOfForm, send } from '#front/dashboard/sending.ts';
import { formBody } from '#front/http/body-limits.ts';
import { newId } from '#platform/base/id.ts';
import { domainOf } from '#platform/values/address.ts';
import { Refusal, type RefusalCode } from '#platform/values/refusal.ts';
import { testDomain } from '#platform/values/test-route.ts';
import { testMail } from './test-mail.ts';

export const sendTestPage: DashboardPage = {
  form: formBody({ largest: 5 * 1024 * 1024, fields: 1_000 }),
  organization: {
    'GET /dashboard/o/:org/send-test': (visit, parts) => form(visit, parts),
    'POST /dashboard/o/:org/send-test': post,
  },
};

async function form(visit: OrgVisit, { db }: PageParts, errors: Errors = {}): Promise<PageAnswer> {
  const verified = await verifiedDomains(db, visit.org.id);
  const checked = valuesOf(visit.form);
  const values = { ...testMail(visit.org.name), to: visit.user.email, ...checked };
  const isTest = verified.length === 0;
  const data = { isTest, domains: isTest ? [testDomain] : verified, values, errors, once: newId() };
  return show('send-test/send-test', 'Send a test', data);
}

async function verifiedDomains(db: PageParts['db'], orgId: string): Promise<string[]> {
  const isVerified = ({ status }: DomainRecord) => status === 'verified';
  return (await listDomains(db, orgId)).filter(isVerified).map(({ name }) => name);
}

const fields = z
  .object({
    local: oneLine('the part before the @', 64),
    domain: oneLine('a domain', 255),
    to: oneLine('a recipient', 320),
    subject: oneLine('a subject', 998),
    html: z.string().default(''),
    text: z.string().default(''),
    once: z.string().max(36).default(''),
  })
  .superRefine(({ local, domain, to, html, text }, context) => {
    const problem = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    if (domainOf(`${local}@${domain}`) === null)
      problem('local', problemWith(local, 'Enter the name of a mailbox, such as hello.'));
    if (domainOf(to) === null)
      problem('to', problemWith(to, 'Enter an email address, such as ann@example.org.'));
    if (html === '' && text === '') problem('text', 'Enter a text, HTML, or both.');
  });

async function post(visit: OrgVisit, parts: PageParts): Promise<PageAnswer> {
  const checked = checkForm(visit.form, fields);
  if (!checked.ok) return form(visit, parts, checked.errors);
  const { once, local, domain, to, subject, html, text } = checked.values;
  const content = { from: `${local}@${domain}`, to, subject, ...(html && { html }), ...(text && { text }) };
  const parsed = sendSchema.safeParse({ ...content, tags: { sent: 'by hand' } });
  if (!parsed.success) {
    const problems = parsed.error.issues.map(({ path, message }) => [
      String(path[0] ?? ''),
      `It ${message}.`,
    ]);
    return form(visit, parts, Object.fromEntries(problems));
  }
  const idempotency = idempotencyOfForm(once || newId(), content);
  // The form has no attachments to fetch.
  const sendFields = toRequest(parsed.data, async () => []);
  const request = { ...sendFields, idempotency, requestId: visit.context.state.requestId };
  try {
    const { emailId } = await send(
      { orgId: visit.org.id, isTest: domain === testDomain },
      parts,
      request,
      html.length + text.length,
    );
    return redirect(
      `${visit.base}/emails/${emailId}`,
      'The test email was accepted. Its status updates below.',
    );
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return form(visit, parts, { [fieldOf[error.code] ?? '']: messageOf(error, to) });
  }
}

const fieldOf: Partial<Record<RefusalCode, string>> = {
  ALL_RECIPIENTS_SUPPRESSED: 'to',
  DOMAIN_NOT_FOUND: 'domain',
  DOMAIN_NOT_VERIFIED: 'domain',
};

function messageOf({ code, message }: Refusal, to: string): string {
  if (code !== 'ALL_RECIPIENTS_SUPPRESSED') return message;
  return `${to} is on the suppression list. Remove it from the list to send to it.`;
}
