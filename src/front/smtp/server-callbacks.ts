/** Adapts smtp-server's callbacks to a MailHandler: converts sessions, turns refusals into replies, receives messages. */
import type { SMTPServerDataStream, SMTPServerOptions, SMTPServerSession } from 'smtp-server';
import type { ByteBudget } from '#platform/base/limits/byte-budget.ts';
import type { Slots } from '#platform/base/limits/slots.ts';
import { clientNetwork } from '#platform/base/net/client-network.ts';
import {
  type Client,
  type MailHandler,
  type MailSession,
  SmtpRefusal,
  type Transaction,
} from '#platform/values/mail-handler.ts';
import { type Bounds, receive } from './receive-message.ts';
import { connectionOf } from './smtp-connection.ts';

interface Parts<User> {
  handler: MailHandler<User>;
  bounds: Bounds;
  memoryBudget: Pick<ByteBudget, 'open'>;
  organizationSlots: Slots;
  onError(what: string, error: unknown): void;
}

type Callbacks = Pick<SMTPServerOptions, 'onAuth' | 'onMailFrom' | 'onRcptTo' | 'onData'>;

const transactions = new WeakMap<object, Transaction>();

/** `running`: the handler calls in progress, which a stop waits for. */
export function callbacksOf<User>(parts: Parts<User>, running: Set<Promise<unknown>>): Callbacks {
  const { handler } = parts;

  function decide<Result>(
    deciding: Promise<Result>,
    callback: (error: Error | null, result?: Result) => void,
  ): void {
    deciding.then(
      (result) => callback(null, result),
      (error) => callback(replyOf(error, parts.onError)),
    );
  }

  function track<Result>(step: Promise<Result>): Promise<Result> {
    running.add(step);
    const over = () => running.delete(step);
    step.then(over, over);
    return step;
  }

  return {
    onAuth({ username = '', password }, session, callback) {
      const login = track(handler.authenticate!(username, password ?? '', clientOf(session)));
      decide(
        login.then((user) => {
          takePlace(parts, user, session);
          // smtp-server requires a truthy user.
          return { user: { user } };
        }),
        callback,
      );
    },
    onMailFrom: ({ address, args }, session, callback) =>
      decide(
        onlyKnown(args, handler.authenticate ? ofSubmission : ofMail).then(() =>
          track(handler.onMailFrom(address, sessionOf(session))),
        ),
        callback,
      ),
    onRcptTo: ({ address, args }, session, callback) =>
      decide(
        onlyKnown(args, []).then(() => track(handler.onRcpt(address, sessionOf(session)))),
        callback,
      ),
    onData: (stream, session, callback) =>
      decide(
        take(parts, stream, session, track).then((text) => `2.6.0 ${text}`),
        callback,
      ),
  };
}

/**
 * From the login on the connection takes a place of its organization, and none of its network. A client with connections that
 * are logged in, or that were refused because the organization has too many, keeps no other client from logging in.
 */
function takePlace<User>(
  { handler, organizationSlots }: Parts<User>,
  user: User,
  session: SMTPServerSession,
): void {
  const organization = handler.organizationOf?.(user);
  if (organization === undefined) return;
  const free = organizationSlots.take(organization);
  if (typeof free !== 'function')
    throw new SmtpRefusal(
      421,
      '4.7.0',
      'Too many connections of your organization. Close some, or retry later.',
    );
  const connection = connectionOf(session);
  if (connection.ending.aborted) free();
  else connection.ending.addEventListener('abort', free);
  connection.leaveNetwork();
}

/** Called for messages that the connection refuses by itself. */
export function onUnreadOf<User>({ onUnread }: MailHandler<User>) {
  return (reason: string, session: SMTPServerSession): void => {
    // There is no envelope before the greeting.
    const to = (session.envelope?.rcptTo ?? []).map(({ address }) => address);
    if (to.length > 0) onUnread?.(reason, to, sessionOf(session));
  };
}

/** RFC 1870, RFC 6152, RFC 6531, RFC 4954 section 5; RFC 8689 where applications submit mail. */
const ofMail = ['SIZE', 'BODY', 'SMTPUTF8', 'AUTH'];
const ofSubmission = [...ofMail, 'REQUIRETLS'];

/** RFC 5321 section 4.1.1.11: refuses parameters of extensions that were not offered. smtp-server accepts them. */
async function onlyKnown(args: object | false, known: string[]): Promise<void> {
  const unknown = Object.keys(args || {}).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const cure = ofDsn.includes(unknown) ? ': turn delivery status notifications (DSN) off' : '';
  throw new SmtpRefusal(
    555,
    '5.5.4',
    `The parameter ${unknown.replace(/[^\w-]/g, '?').slice(0, 40)} is not offered${cure}`,
  );
}

/** RFC 3461. Some libraries ask for notifications without a look at the reply to EHLO. */
const ofDsn = ['NOTIFY', 'ORCPT', 'RET', 'ENVID'];

async function take<User>(
  { handler, memoryBudget, bounds }: Parts<User>,
  stream: SMTPServerDataStream,
  session: SMTPServerSession,
  track: (step: Promise<string>) => Promise<string>,
): Promise<string> {
  const own = handler.boundsOf?.(sessionOf(session)) ?? null;
  const { largest, hold } = own ?? { ...bounds, hold: memoryBudget.open(ownerOf(handler, session)) };
  const { mailFrom, rcptTo, smtpUtf8 } = session.envelope;
  try {
    const raw = await receive(stream, hold, { largest }).catch((error) => {
      if (error instanceof SmtpRefusal) onUnreadOf(handler)(error.message, session);
      throw error;
    });
    const envelope = {
      from: mailFrom ? mailFrom.address : '',
      to: rcptTo.map(({ address }) => address),
      requireTls: session.envelope.requireTLS === true,
      isUtf8: smtpUtf8 === true,
    };
    return await track(handler.onMessage(raw, envelope, sessionOf(session)));
  } finally {
    hold.release();
  }
}

function ownerOf<User>(
  { organizationOf }: MailHandler<User>,
  { user, remoteAddress }: SMTPServerSession,
): string {
  return (user && organizationOf?.(user.user)) ?? clientNetwork(remoteAddress);
}

function sessionOf<User>(session: SMTPServerSession): MailSession<User> {
  return {
    id: session.id,
    client: clientOf(session),
    user: session.user ? session.user.user : null,
    ending: connectionOf(session).ending,
    transaction: transactionOf(session),
  };
}

function transactionOf({ envelope }: SMTPServerSession): Transaction {
  // There is no envelope before the greeting, and no sender in it during MAIL.
  const known = envelope && transactions.get(envelope);
  if (known) return known;
  const { SIZE: size } = (envelope?.mailFrom || null)?.args || {};
  const transaction = { size: size === undefined ? null : Number(size) };
  if (envelope?.mailFrom) transactions.set(envelope, transaction);
  return transaction;
}

function clientOf({ remoteAddress, hostNameAppearsAs, tlsOptions }: SMTPServerSession): Client {
  return {
    address: remoteAddress,
    helo: hostNameAppearsAs,
    tls: tlsOptions ? { protocol: tlsOptions.version, cipher: tlsOptions.name } : null,
  };
}

/** smtp-server takes the reply code from `responseCode`. */
function replyOf(error: Error & { code?: unknown }, onError: Parts<unknown>['onError']): Error {
  const refusal = error instanceof SmtpRefusal ? error : unexpected(error, onError);
  return Object.assign(new Error(`${refusal.enhanced} ${refusal.message}`), { responseCode: refusal.code });
}

function unexpected(error: Error & { code?: unknown }, onError: Parts<unknown>['onError']): SmtpRefusal {
  // ECONNECTION: the client disconnected in the middle of its message.
  if (error.code !== 'ECONNECTION')
    onError('an SMTP command failed; the client was told to retry (451)', error);
  return new SmtpRefusal(451, '4.3.0', 'Internal error. Retry later.');
}
