/**
 * Handles returned mail: bounces, complaints and reports.
 *
 *   RCPT      check that the address is ours and that its tag is valid
 *   message   parse it, find the delivery, commit the result, write the mail log
 *
 * Mail to an address that unsubscribes does that, whatever it says, unless a program answered: then its sender is null, or it
 * says so itself. (Mail readers unsubscribe by mail that is generated; that is no answer.)
 *
 * Never sends mail in response: a bounce becomes an event, and a mail that no rule recognises is kept for the operator. The 250 is
 * sent after the commit; after an error of the server, the reply is 451 and the client retries.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { fieldValue, readHead } from '#mail/compose/head.ts';
import type {
  BouncedDelivery,
  BounceResult,
  IncomingBounce,
  ReturnedMail,
} from '#mail/returned/rows/record-bounces.ts';
import type { Clock } from '#platform/base/clock.ts';
import { clientNetwork } from '#platform/base/net/client-network.ts';
import {
  type Envelope,
  type MailHandler,
  type MailSession,
  SmtpRefusal,
} from '#platform/values/mail-handler.ts';
import type { AggregateReport } from './aggregate-report.ts';
import type { BounceNotice } from './bounce-log-lines.ts';
import type { Complaint, Delay, ParseResult, ReportedFailure, Token } from './parse-result.ts';
import type { AddressRole, OwnAddress, ReadServiceAddress } from './service-addresses.ts';

export interface BounceHandlerParts {
  readAddress: ReadServiceAddress;
  findDelivery(id: string): Promise<BouncedDelivery | null>;
  read(
    bytes: Uint8Array,
    role: AddressRole,
    sender: { fromNullSender: boolean; network: string },
  ): Promise<ParseResult>;
  /** The delivery that the tokens prove, or null. */
  deliveryOf(tokens: Token[]): Promise<string | null>;
  record(incoming: IncomingBounce): Promise<BounceResult>;
  /** Unsubscribes the recipient of a delivery. */
  unsubscribe(deliveryId: string): Promise<unknown>;
  keepMail(mail: ReturnedMail, deliveryId: string | null, reading: ParseResult): Promise<unknown>;
  keepReport(report: AggregateReport): Promise<unknown>;
  report(to: BouncedDelivery, reading: BounceNotice, outcome: BounceResult | null): void;
  clock: Clock;
}

/** Bytes of a kept mail that are stored. */
const longestRaw = 64 * 1024;

/** A host may bounce a mail before we have recorded that it accepted the mail. */
const retryDelaysMs = [50, 100, 200, 400, 800, 1600, 3200];

export class BounceHandler implements MailHandler<null> {
  readonly authenticate = null;
  readonly #parts: BounceHandlerParts;

  constructor(parts: BounceHandlerParts) {
    this.#parts = parts;
  }

  async onMailFrom(): Promise<void> {
    // Bounces come from the null sender, complaints and reports from any sender.
  }

  async onRcpt(address: string): Promise<void> {
    await this.#requireOurs(address);
  }

  async onMessage(raw: Buffer, { from, to }: Envelope, session: MailSession<null>): Promise<string> {
    const network = clientNetwork(session.client.address);
    const parse = this.#parseOncePerRole(raw, { fromNullSender: from === '', network });
    const at = this.#parts.clock.now();
    const kept = { at, size: raw.length, raw: raw.subarray(0, longestRaw) };
    for (const { address, recipient } of await this.#addressesOf(to)) {
      await this.#handle({ ...kept, sender: from, recipient, peer: session.client.address }, address, parse);
    }
    return 'Taken';
  }

  async #requireOurs(address: string): Promise<OwnAddress> {
    const own = await this.#parts.readAddress(address);
    if (own.role === 'other-domain') throw new SmtpRefusal(550, '5.7.1', 'Relaying denied');
    const noSuchAddress = new SmtpRefusal(550, '5.1.1', 'No such address here');
    if (own.role === 'unknown') throw noSuchAddress;
    if ('deliveryId' in own && !(await this.#parts.findDelivery(own.deliveryId))) throw noSuchAddress;
    return own;
  }

  /** Each address once, however it was spelled. Return paths first, because they name their delivery. */
  async #addressesOf(to: string[]): Promise<{ address: OwnAddress; recipient: string }[]> {
    const found = new Map<string, { address: OwnAddress; recipient: string }>();
    for (const recipient of to) {
      const address = await this.#requireOurs(recipient);
      const key = 'deliveryId' in address ? `${address.role} ${address.deliveryId}` : address.name;
      if (!found.has(key)) found.set(key, { address, recipient });
    }
    const isKeyed = ({ address }: { address: OwnAddress }) => Number(address.role === 'return-path');
    return [...found.values()].sort((a, b) => isKeyed(b) - isKeyed(a));
  }

  /** The same mail is parsed differently for each role, and only once for each. */
  #parseOncePerRole(
    raw: Buffer,
    sender: Parameters<BounceHandlerParts['read']>[2],
  ): (role: AddressRole) => Promise<ParseResult> {
    const readings = new Map<AddressRole, Promise<ParseResult>>();
    return (role) => {
      const reading = readings.get(role) ?? this.#parts.read(raw, role, sender);
      readings.set(role, reading);
      return reading;
    };
  }

  async #handle(
    mail: ReturnedMail,
    address: OwnAddress,
    parse: (role: AddressRole) => Promise<ParseResult>,
  ): Promise<void> {
    if (address.role === 'unsubscribe') {
      if (mail.sender !== '' && !isAutoReply(mail.raw)) await this.#parts.unsubscribe(address.deliveryId);
      return;
    }
    const reading = await parse(address.role);
    if (reading.kind === 'report') return void (await this.#parts.keepReport(reading.report));
    if (reading.kind === 'automatic' || reading.kind === 'arrived') return;
    const deliveryId = await this.#deliveryIn(address, reading);
    if (deliveryId !== null && (reading.kind === 'failed' || reading.kind === 'complaint')) {
      return this.#commit({ deliveryId, reading, mail });
    }
    if (reading.kind === 'delayed') return this.#reportDelay(deliveryId, reading);
    await this.#parts.keepMail(mail, deliveryId, reading);
  }

  /** The delivery that the mail is about: a return path names it; a complaint to a public address needs tokens with our key. */
  async #deliveryIn(address: OwnAddress, reading: ParseResult): Promise<string | null> {
    if (address.role === 'return-path') return address.deliveryId;
    return reading.kind === 'complaint' ? this.#parts.deliveryOf(reading.tokens) : null;
  }

  async #commit(incoming: IncomingBounce & { reading: ReportedFailure | Complaint }): Promise<void> {
    for (const ms of [...retryDelaysMs, null]) {
      const outcome = await this.#parts.record(incoming);
      if (outcome === 'gone') return;
      if (outcome !== 'wait') return this.#parts.report(outcome.to, incoming.reading, outcome);
      if (ms === null)
        throw new SmtpRefusal(451, '4.3.0', 'The delivery of that mail is still in progress. Retry later.');
      await pause(ms);
    }
  }

  async #reportDelay(deliveryId: string | null, reading: Delay): Promise<void> {
    const to = deliveryId === null ? null : await this.#parts.findDelivery(deliveryId);
    if (to) this.#parts.report(to, reading, null);
  }
}

/** RFC 3834 section 5: an answer, such as that of a person who is away. */
function isAutoReply(raw: Buffer): boolean {
  return /^auto-replied\b/i.test(fieldValue(readHead(raw), 'auto-submitted') ?? '');
}
