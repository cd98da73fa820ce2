/**
 * SMTP submission by applications: a send like one of the API, with the same rules and the same code. The password is an
 * API key; the user name is ignored. MAIL looks the key up again, because it may have been revoked, and counts the request,
 * for which it may wait (request-wait.ts), because nothing of the message is in memory yet.
 * The message is then converted to a request (send-request.ts) and accepted. 250 is sent after the commit.
 *
 * The address of MAIL FROM is ignored, whatever it is: the From field names the sender, and bounces go to addresses of our own.
 */

import { type Caller, requireGrant } from '#accounts/api-keys.ts';
import { admitSend, type SendCapacity } from '#front/api/send/admit-send.ts';
import type { AuthThrottle } from '#front/http/auth-throttle.ts';
import type { Accept, Accepted } from '#mail/accept/accept.ts';
import { domainOf } from '#platform/values/address.ts';
import { withoutHidden } from '#platform/values/hidden-characters.ts';
import {
  type Client,
  type Envelope,
  type MailHandler,
  type MailSession,
  SmtpRefusal,
} from '#platform/values/mail-handler.ts';
import { Refusal } from '#platform/values/refusal.ts';
import type { ReadSubmitted } from './read-submitted.ts';
import { printable, replyOf } from './refusal-replies.ts';
import type { RequestWait } from './request-wait.ts';

export interface SubmissionParts extends SendCapacity {
  /** The name of this host, for the Received field. */
  hostname: string;
  findCaller(key: string): Promise<Caller | null>;
  requestWait: RequestWait;
  authThrottle: AuthThrottle;
  accept: Accept;
  readSubmitted: ReadSubmitted;
  /** Logs a refused login with the client's address, for tools such as fail2ban. */
  onRefused(client: Client): void;
  /** Called with each mail that is refused, for the mail log. `recipients` is empty if MAIL is refused. */
  onRefusedSend(send: RefusedMail): void;
  onError(what: string, error: unknown): void;
}

interface RefusedMail {
  sender: Caller;
  refusal: Refusal;
  recipients: string[];
  requestId: string;
}

/** The key, because it is looked up again at each step. */
interface Login {
  key: string;
  orgId: string;
}

export function createSubmission(parts: SubmissionParts): MailHandler<Login> {
  return {
    authenticate: (_, key, client) => withReplies(parts, () => logIn(parts, key, client)),
    organizationOf: ({ orgId }) => orgId,
    onMailFrom: (_, session) => withReplies(parts, () => begin(parts, session)),
    async onRcpt(address) {
      if (domainOf(address) !== null) return;
      const expected = `must be a plain email address${withoutHidden(address)}`;
      throw new SmtpRefusal(553, '5.1.3', `VALIDATION_ERROR: to: ${expected}`);
    },
    onMessage: (raw, envelope, session) => withReplies(parts, () => send(parts, raw, envelope, session)),
    onUnread: (reason, to, session) => void logUnread(parts, reason, to, session),
  };
}

async function withReplies<Result>(
  { onError }: SubmissionParts,
  step: () => Promise<Result>,
): Promise<Result> {
  try {
    return await step();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (error.code === 'SEND_FAILED') onError('a submitted mail failed', error.cause);
    throw replyOf(error);
  }
}

async function logIn(parts: SubmissionParts, password: string, client: Client): Promise<Login> {
  // A key has no blanks: those around it are of the file that it was read from.
  const key = password.trim();
  const caller = await parts.findCaller(key);
  if (caller) return { key, orgId: caller.orgId };
  parts.onRefused(client);
  const { exceeded, window } = parts.authThrottle.fail(client.address);
  if (!exceeded) throw unauthorized();
  const message = 'Too many logins without a valid API key from this address.';
  const { message: text } = replyOf(
    new Refusal('RATE_LIMIT_EXCEEDED', message, { retryAfterMs: window.resetMs }),
  );
  throw new SmtpRefusal(421, '4.7.0', text);
}

function unauthorized(): Refusal {
  return new Refusal('UNAUTHORIZED', 'The password is not a valid API key, or the key has been revoked.');
}

/** In the same order as the API (docs/design.md section 2). */
async function begin(parts: SubmissionParts, { id, user, ending }: MailSession<Login | null>): Promise<void> {
  const sender = user && (await parts.findCaller(user.key));
  if (!sender) throw unauthorized();
  await orLogged(parts, { sender, recipients: [], requestId: id }, async () => {
    // The slot for the message is taken when it has arrived; a client can be refused before it sends one.
    const slot = await admitSend(parts, sender.orgId, 0);
    slot.release();
    await parts.requestWait.count(sender.orgId, sender.limits, ending);
    requireGrant(sender, 'email:send');
  });
}

async function logUnread(
  { findCaller, onRefusedSend, onError }: SubmissionParts,
  reason: string,
  recipients: string[],
  { id, user }: MailSession<Login | null>,
): Promise<void> {
  try {
    const sender = user && (await findCaller(user.key));
    if (sender)
      onRefusedSend({ sender, recipients, requestId: id, refusal: new Refusal('BAD_REQUEST', reason) });
  } catch (error) {
    onError('a refused message could not be logged', error);
  }
}

async function orLogged<Result>(
  { onRefusedSend }: SubmissionParts,
  mail: Omit<RefusedMail, 'refusal'>,
  step: () => Promise<Result>,
): Promise<Result> {
  try {
    return await step();
  } catch (refusal) {
    if (refusal instanceof Refusal) onRefusedSend({ ...mail, refusal });
    throw refusal;
  }
}

async function send(
  parts: SubmissionParts,
  raw: Buffer,
  { to, requireTls, isUtf8 }: Envelope,
  { id, user, client }: MailSession<Login>,
): Promise<string> {
  const sender = await parts.findCaller(user.key);
  if (!sender) throw unauthorized();
  return orLogged(parts, { sender, recipients: to, requestId: id }, async () => {
    requireGrant(sender, 'email:send');
    const received = `by ${parts.hostname} with ${protocolOf(isUtf8, client)}`;
    const slot = await admitSend(parts, sender.orgId, raw.length);
    try {
      const submitted = { to, requestId: id, requireTls, received };
      const request = await parts.readSubmitted(sender.orgId, raw, submitted);
      // Many programs take no notice of what the reply says, so a mail is accepted for all recipients or for none.
      return replyText(await parts.accept({ ...request, mustAffordAll: true }, sender));
    } finally {
      slot.release();
    }
  });
}

/** RFC 3848; RFC 6531 section 4.3. */
function protocolOf(isUtf8: boolean, { tls }: Client): string {
  return `${isUtf8 ? 'UTF8SMTP' : 'ESMTP'}${tls ? 'S' : ''}A`;
}

/** Text of the 250; a client's log is often the only place where it is read. */
function replyText({ answer: { emailId, id, suppressed }, heldBy }: Accepted): string {
  const held = heldBy ? `; held by the pause ${heldBy.pauseId}` : '';
  const skipped = suppressed.map((address) => `${address} (suppressed)`);
  const rest = skipped.length > 0 ? `; skipped: ${skipped.join(', ')}` : '';
  return printable(`Accepted as ${emailId} <${id}>${held}${rest}`).slice(0, 480);
}
