/** `inReplyTo`: a send that answers a received mail of the same organization. */
import type { Caller } from '#accounts/api-keys.ts';
import type { SendRequest } from '#mail/accept/requested-send.ts';
import { headerIssue } from '#mail/compose/custom-headers.ts';
import type { ReceivedMail } from '#mail/received/received-mail.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { isReceivedTest } from '#platform/values/test-route.ts';

/** A request whose headers, and its subject if it came without one, are those of an answer to this mail. */
export interface ReplyRequest extends SendRequest {
  inReplyTo?: string | undefined;
  /** The subject is not the caller's. */
  lacksSubject?: boolean;
}

export type FindReceived = (orgId: string, id: string) => Promise<ReceivedMail | null>;

const maxSubject = 998;

/** What the caller gives stays as it is given. A test key answers test mail. */
export async function asReply(
  find: FindReceived,
  { inReplyTo: id, lacksSubject, ...request }: ReplyRequest,
  { orgId, isTest }: Pick<Caller, 'orgId' | 'isTest'>,
): Promise<SendRequest> {
  if (id === undefined) return request;
  const mail = await find(orgId, id);
  if (!mail || (isTest && !isReceivedTest(mail))) throw unknownMail(id);
  const given = new Set(Object.keys(request.headers).map((name) => name.toLowerCase()));
  const [reference] = mail.messageId === null ? [] : idsOf([mail.messageId]);
  const headers = { ...request.headers };
  // RFC 5322 section 3.6.4.
  if (reference && !given.has('in-reply-to')) headers['In-Reply-To'] = reference;
  if (reference && !given.has('references'))
    headers.References = [...idsOf(mail.summary.references), reference].join(' ');
  return { ...request, headers, subject: lacksSubject ? replySubject(mail.subject) : request.subject };
}

/** Those that a header of ours can have. */
function idsOf(ids: readonly string[]): string[] {
  return ids.map((id) => `<${id}>`).filter((id) => headerIssue('In-Reply-To', id) === null);
}

function replySubject(subject: string): string {
  const text = subject.replace(/\p{Cc}+/gu, ' ').trim();
  const reply = /^re\s?:/i.test(text) ? text : `Re: ${text}`.trim();
  return reply.slice(0, maxSubject).toWellFormed();
}

function unknownMail(id: string): Refusal {
  const expected = 'the id of a received mail that is kept';
  const issue = {
    code: 'custom',
    expected,
    received: `string of ${id.length} characters`,
    path: ['inReplyTo'],
    message: `inReplyTo: must be ${expected}`,
  };
  return new Refusal('VALIDATION_ERROR', 'The request is not valid.', { issues: [issue] });
}
