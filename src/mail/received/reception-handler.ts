/**
 * Receives mail for applications: decides about each recipient, then reads and judges the mail, and keeps it.
 *
 *   RCPT      find the receiving domain and the route; refuse what is over a limit, too large or not wanted
 *   message   read it, look for loops, SPF, DKIM, DMARC, ARC and spam, commit it with its event
 *
 * Nothing is ever sent in answer: what cannot be taken is refused before the 250, which follows the commit.
 */

import type { ReceivingDomain } from '#accounts/rows/receiving-domains.ts';
import type { Reception, RecordedReception } from '#mail/received/rows/record-received.ts';
import type { Clock } from '#platform/base/clock.ts';
import { failpoint } from '#platform/base/failpoints.ts';
import { newId } from '#platform/base/id.ts';
import type { Slots } from '#platform/base/limits/slots.ts';
import { clientNetwork } from '#platform/base/net/client-network.ts';
import { toDomain } from '#platform/values/address.ts';
import { type Envelope, type MailSession, SmtpRefusal } from '#platform/values/mail-handler.ts';
import type { ReadMail } from './read-mail.ts';
import type { ReceivedReader } from './reading-tasks.ts';
import {
  maxReceivedBytes,
  type ReceivedMail,
  type ReceivingRoute,
  type SpamVerdict,
  type Verdicts,
} from './received-mail.ts';
import { isPostmaster } from './receiving-route.ts';
import type { ReceptionRates } from './reception-limits.ts';
import { defaultReply, parseReply } from './reject-reply.ts';
import { countHops, headerLength, traceFields, withoutForged } from './trace-fields.ts';
import type { Judge } from './verdicts.ts';

export interface ReceptionParts {
  hostname: string;
  findDomain(name: string): Promise<ReceivingDomain | null>;
  /** The route that takes the address; null if there is none. */
  findRoute(domain: ReceivingDomain, address: string): Promise<ReceivingRoute | null>;
  rates: ReceptionRates;
  /** Of the mails that are being read, counted in MiB. */
  slots: Slots;
  hasSpace(): boolean;
  /** Bytes that an organization's mails may take. */
  storeBytes: number;
  storedBytes(orgId: string): Promise<number>;
  reader: Pick<ReceivedReader, 'mail' | 'signatures'>;
  judge: Judge;
  /** Null: no filter is configured, or it does not answer. */
  spamVerdict(mail: FilteredMail): Promise<SpamVerdict | null>;
  /** The first of the emails, by Message-ID, that the organization has sent. */
  findAnswered(orgId: string, messageIds: readonly string[]): Promise<string | null>;
  record(reception: Reception): Promise<RecordedReception>;
  report(taken: TakenMail): void;
  /** Aborts when the service begins to stop; then DNS has no answers. */
  stopping: AbortSignal;
  clock: Clock;
}

/** What was taken and is not refused any more, by one route; without an id, it was dropped. */
export type TakenMail = Pick<ReceivedMail, 'orgId' | 'sender' | 'recipients' | 'peer'> & {
  id?: string;
  action: ReceivingRoute['action'];
};

export interface FilteredMail {
  raw: Buffer;
  sender: string;
  recipients: readonly string[];
  peer: string;
  helo: string;
}

/** A recipient that was accepted at RCPT. */
export interface AcceptedRecipient {
  address: string;
  route: ReceivingRoute;
}

/** Records of one mail, each with its bytes; the client sends the others in another transaction. */
const maxRoutes = 10;
/** As Postfix; RFC 5321 section 6.3. */
const maxHops = 50;
/** A mail that an application passes on to itself comes back with our own fields. */
const maxOwnHops = 5;
const maxHeaderBytes = 512 * 1024;
const mebibyte = 1024 * 1024;

export class ReceptionHandler {
  readonly #parts: ReceptionParts;
  readonly #accepted = new WeakMap<object, AcceptedRecipient[]>();

  constructor(parts: ReceptionParts) {
    this.#parts = parts;
  }

  /** False if the address is at no receiving domain, or a postmaster without a route. Throws the refusal of others. */
  async takes(address: string, session: MailSession<null>): Promise<boolean> {
    const domain = await this.#domainOf(address);
    if (!domain) return false;
    if (domain.status !== 'verified')
      throw new SmtpRefusal(451, '4.3.5', `${domain.name} is not verified at the moment. Retry later.`);
    const network = clientNetwork(session.client.address);
    if (!this.#parts.rates.ask({ network, organization: domain.orgId })) throw tooMuch();
    const route = await this.#parts.findRoute(domain, address);
    if (!route && isPostmaster(address)) return false;
    if (!route) throw new SmtpRefusal(550, '5.1.1', 'No such address here');
    if (route.action === 'reject') throw ownRefusal(route.reply);
    const accepted = this.acceptedIn(session);
    requireSize(session.transaction.size, [...accepted, { address, route }]);
    requireAlike(accepted, route);
    await this.#requireRoom(route, session.transaction);
    accepted.push({ address, route });
    this.#accepted.set(session.transaction, accepted);
    return true;
  }

  /** The recipients of the transaction that were accepted here. */
  acceptedIn({ transaction }: Pick<MailSession<null>, 'transaction'>): AcceptedRecipient[] {
    return this.#accepted.get(transaction) ?? [];
  }

  async onMessage(raw: Buffer, envelope: Envelope, session: MailSession<null>): Promise<void> {
    const recipients = this.acceptedIn(session);
    requireSize(raw.length, recipients);
    const owner = recipients[0]!.route.orgId;
    for (const { route } of recipients) this.#parts.rates.take({ route: route.id, organization: owner });
    const free = await this.#parts.slots.enter(owner, {
      count: Math.ceil((raw.length + 1) / mebibyte),
      signal: session.ending,
    });
    if (!free) throw shuttingDown();
    try {
      for (const one of recipients) await this.#requireUnchanged(one);
      await this.#receive(raw, envelope, session, recipients);
    } finally {
      free();
    }
  }

  /** A sender may take a quarter of an hour for a message: by then, the address may be another organization's, or none. */
  async #requireUnchanged({ address, route: { id, updatedAt } }: AcceptedRecipient): Promise<void> {
    const domain = await this.#domainOf(address);
    const route = domain?.status === 'verified' ? await this.#parts.findRoute(domain, address) : null;
    if (route?.id !== id || route.updatedAt !== updatedAt)
      throw new SmtpRefusal(451, '4.3.5', 'This address has just been changed. Send the mail again.');
  }

  async #domainOf(address: string): Promise<ReceivingDomain | null> {
    const at = address.lastIndexOf('@');
    const name = at < 1 ? null : toDomain(address.slice(at + 1).replace(/\.$/, ''));
    return name === null ? null : this.#parts.findDomain(name);
  }

  /** Nothing that will be refused later is worth a sender's bytes. */
  async #requireRoom(
    { id, orgId }: ReceivingRoute,
    { size }: MailSession<null>['transaction'],
  ): Promise<void> {
    const { rates, hasSpace, storedBytes, storeBytes } = this.#parts;
    if (!hasSpace()) throw new SmtpRefusal(452, '4.3.1', 'The server is low on disk space. Retry later.');
    if (!rates.hasRoom({ route: id, organization: orgId })) throw tooMuch();
    if ((await storedBytes(orgId)) + (size ?? 0) > storeBytes) throw storeIsFull();
  }

  async #receive(
    raw: Buffer,
    envelope: Envelope,
    session: MailSession<null>,
    recipients: AcceptedRecipient[],
  ): Promise<void> {
    const { hostname, report } = this.#parts;
    const header = headerOf(raw);
    requireNoLoop(header, hostname);
    const [kept, dropped] = [false, true].map((drops) =>
      recipients.filter(({ route }) => (route.action === 'drop') === drops),
    ) as [AcceptedRecipient[], AcceptedRecipient[]];
    if (kept.length > 0) await this.#keep(withoutForged(raw, header, hostname), envelope, session, kept);
    const { address: peer } = session.client;
    for (const { address, route } of dropped)
      report({ orgId: route.orgId, action: 'drop', sender: envelope.from, recipients: [address], peer });
  }

  async #keep(
    sent: Buffer,
    envelope: Envelope,
    session: MailSession<null>,
    kept: AcceptedRecipient[],
  ): Promise<void> {
    const { reader, judge, spamVerdict, report } = this.#parts;
    const { address: peer, helo } = session.client;
    const owner = kept[0]!.route.orgId;
    const read = (await reader.mail(owner, sent)) ?? unreadable;
    const [verdicts, spam] = await Promise.all([
      judge({
        sender: envelope.from,
        helo,
        peer,
        read,
        check: (keys) => reader.signatures(owner, sent, keys),
      }),
      spamVerdict({ raw: sent, sender: envelope.from, recipients: envelope.to, peer, helo }),
    ]);
    // What was not looked up any more is not known, and DMARC may ask for a refusal.
    if (this.#parts.stopping.aborted) throw shuttingDown();
    requirePolicy(verdicts, kept);
    failpoint('judged');
    const mails = await this.#recordsOf({ sent, envelope, session, read, verdicts, spam }, kept);
    if ((await this.#parts.record(mails)) === 'full') throw storeIsFull();
    for (const mail of mails) report(mail);
  }

  /** One for each route. */
  async #recordsOf(mail: JudgedMail, kept: AcceptedRecipient[]): Promise<Reception> {
    const mails: Reception = [];
    for (const ofRoute of Map.groupBy(kept, ({ route }) => route.id).values()) {
      const { route } = ofRoute[0]!;
      const recipients = [...new Set(ofRoute.map(({ address }) => address))];
      const inReplyTo = await this.#parts.findAnswered(route.orgId, mail.read.answered);
      mails.push(this.#recordOf(mail, route, recipients, inReplyTo));
    }
    return mails;
  }

  #recordOf(
    { sent, envelope, session, read, verdicts, spam }: JudgedMail,
    route: ReceivingRoute,
    recipients: string[],
    inReplyTo: string | null,
  ): Reception[number] {
    const { hostname, clock } = this.#parts;
    const { address: peer, helo, tls } = session.client;
    const [id, at] = [newId(), clock.now()];
    const trace = {
      hostname,
      id,
      at,
      helo,
      peer,
      isTls: tls !== null,
      isUtf8: envelope.isUtf8,
      recipients,
      sender: envelope.from,
    };
    const raw = Buffer.concat([traceFields(trace, verdicts), sent]);
    return {
      id,
      orgId: route.orgId,
      domain: route.domain,
      routeId: route.id,
      action: route.action === 'store' ? 'store' : 'webhook',
      webhookId: route.webhookId,
      recipients,
      sender: envelope.from,
      peer,
      helo,
      messageId: read.messageId,
      subject: read.subject,
      fromHeader: read.fromHeader,
      inReplyTo,
      summary: {
        ...read.summary,
        isAutomatic: read.summary.isAutomatic || envelope.from === '',
        verdicts,
        spam,
        tls,
      },
      size: raw.length,
      at,
      raw,
    };
  }
}

interface JudgedMail {
  /** Without the fields that its sender has forged. */
  sent: Buffer;
  envelope: Envelope;
  session: MailSession<null>;
  read: ReadMail;
  verdicts: Verdicts;
  spam: SpamVerdict | null;
}

/** A mail that the reader did not get through. */
const unreadable: ReadMail = {
  messageId: null,
  subject: '',
  fromHeader: '',
  answered: [],
  signatures: { isSigned: false, isBounded: false, keyNames: [] },
  fromDomains: null,
  summary: {
    isReadable: false,
    preview: '',
    textLength: 0,
    htmlLength: 0,
    attachments: [],
    references: [],
    isAutomatic: false,
  },
};

function headerOf(raw: Buffer): string {
  const length = headerLength(raw);
  if (length > maxHeaderBytes)
    throw new SmtpRefusal(552, '5.3.4', `The header is larger than ${maxHeaderBytes} bytes`);
  return raw.toString('latin1', 0, length);
}

function requireNoLoop(header: string, hostname: string): void {
  const { all, ours } = countHops(header, hostname);
  if (all > maxHops || ours >= maxOwnHops) throw new SmtpRefusal(554, '5.4.6', 'Mail loop: too many hops');
}

function requireSize(size: number | null, recipients: AcceptedRecipient[]): void {
  const largest = Math.min(...recipients.map(({ route }) => route.largest ?? maxReceivedBytes));
  if (size !== null && size > largest)
    throw new SmtpRefusal(
      552,
      '5.3.4',
      `The message is larger than ${largest} bytes, which this address takes`,
    );
}

/**
 * After DATA there is one reply for all recipients, so those that would answer differently are not in one transaction, nor those
 * of two organizations: what one has no room for would not reach the other. The client sends to the others in another (RFC 5321
 * section 4.5.3.1.10).
 */
function requireAlike(accepted: AcceptedRecipient[], route: ReceivingRoute): void {
  const routes = new Set(accepted.map((one) => one.route.id)).add(route.id);
  const isAlike = ({ route: { orgId, dmarc } }: AcceptedRecipient) =>
    orgId === route.orgId && dmarc === route.dmarc;
  if (routes.size > maxRoutes || !accepted.every(isAlike))
    throw new SmtpRefusal(452, '4.5.3', 'Send the mail to this address in another transaction');
}

/** RFC 7489 section 10.3: the reply of a refusal by policy. */
function requirePolicy({ dmarc }: Verdicts, recipients: AcceptedRecipient[]): void {
  const isRefused = recipients.every(({ route }) => route.dmarc === 'reject');
  if (isRefused && dmarc.result === 'fail' && dmarc.policy === 'reject')
    throw new SmtpRefusal(550, '5.7.1', `Refused because of the DMARC policy of ${dmarc.domain}`);
}

function ownRefusal(reply: string | null): SmtpRefusal {
  const { code, enhanced, text } = (reply === null ? null : parseReply(reply)) ?? parseReply(defaultReply)!;
  return new SmtpRefusal(code, enhanced, text);
}

function shuttingDown(): SmtpRefusal {
  return new SmtpRefusal(451, '4.3.2', 'The server is shutting down. Retry later.');
}

function tooMuch(): SmtpRefusal {
  return new SmtpRefusal(451, '4.7.1', 'Too much mail for this address at the moment. Retry in a minute.');
}

function storeIsFull(): SmtpRefusal {
  return new SmtpRefusal(452, '4.2.2', 'The mailbox is full. Retry later.');
}
