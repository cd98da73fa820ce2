/**
 * What is done with a mail that comes in: the way of a returned mail, step by step.
 *
 *   RCPT      is it an address of ours, and is its key right?
 *   message   read it; find the delivery; commit what it says; then tell
 *
 * Nothing is ever sent for it: a bounce is an event, and a mail that nobody understands is kept for people. The 250
 * comes after the commit; where something of ours fails, the other side is asked to come again.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '../base/clock.ts';
import type {
  InboundMail,
  ReturnedDelivery,
  ReturnedMailRecord,
  ReturnedOutcome,
} from '../db/bounces/returned-mail.ts';
import { type Envelope, type MailHandler, type MailSession, SmtpRefusal } from '../smtp-in/mail-handler.ts';
import type { BounceFacts } from './bounce-log-lines.ts';
import type { Complaint, Delay, Failure, ParsedReturn, Report, Token } from './parse/parse-result.ts';
import type { AddressRole, OwnPlace, ReadServiceAddress } from './service-addresses.ts';

export interface BounceHandlerParts {
  placeOf: ReadServiceAddress;
  findDelivery(id: string): Promise<ReturnedDelivery | null>;
  read(bytes: Uint8Array, role: AddressRole): Promise<ParsedReturn>;
  /** The delivery that tokens prove; null: they prove none. */
  deliveryOf(tokens: Token[]): Promise<string | null>;
  record(returned: ReturnedMailRecord): Promise<ReturnedOutcome>;
  keepMail(mail: InboundMail, deliveryId: string | null, reading: ParsedReturn): Promise<unknown>;
  keepReport(report: Report): Promise<unknown>;
  tell(to: ReturnedDelivery, reading: BounceFacts, outcome: ReturnedOutcome | null): void;
  clock: Clock;
}

/** Of a mail that is kept. */
const longestRaw = 64 * 1024;

/** A host may bounce a mail before we have written down that it took it. */
const waitsMs = [50, 100, 200, 400, 800, 1600, 3200];

export function createBounceHandler(parts: BounceHandlerParts): MailHandler<null> {
  return {
    authenticate: null,
    async onMailFrom() {
      // Bounces come from the null sender, complaints and reports from anybody.
    },
    async onRcpt(address) {
      await requireOurs(address);
    },
    async onMessage(raw, { from, to }: Envelope, session: MailSession<null>) {
      const read = readingOf(raw);
      for (const { place, recipient } of await placesOf(to)) {
        const mail = { ...factsOf(raw), sender: from, recipient, peer: session.client.address };
        await take(mail, place, read);
      }
      return 'Taken';
    },
  };

  async function requireOurs(address: string): Promise<OwnPlace> {
    const place = parts.placeOf(address);
    if (place.role === 'elsewhere') throw new SmtpRefusal(550, '5.7.1', 'Nothing is relayed here');
    const noSuchAddress = new SmtpRefusal(550, '5.1.1', 'There is no such address here');
    if (place.role === 'nobody') throw noSuchAddress;
    if (place.role === 'return-path' && !(await parts.findDelivery(place.deliveryId))) throw noSuchAddress;
    return place;
  }

  /** Each place once, in whatever spellings it was named. Return paths first: what they are for is known. */
  async function placesOf(to: string[]): Promise<{ place: OwnPlace; recipient: string }[]> {
    const places = new Map<string, { place: OwnPlace; recipient: string }>();
    for (const recipient of to) {
      const place = await requireOurs(recipient);
      const key = place.role === 'return-path' ? place.deliveryId : place.name;
      if (!places.has(key)) places.set(key, { place, recipient });
    }
    const isKeyed = ({ place }: { place: OwnPlace }) => Number(place.role === 'return-path');
    return [...places.values()].sort((a, b) => isKeyed(b) - isKeyed(a));
  }

  /** Reads a mail once for each role that its addresses have. */
  function readingOf(raw: Buffer): (role: AddressRole) => Promise<ParsedReturn> {
    const readings = new Map<AddressRole, Promise<ParsedReturn>>();
    return (role) => {
      const reading = readings.get(role) ?? parts.read(raw, role);
      readings.set(role, reading);
      return reading;
    };
  }

  function factsOf(raw: Buffer) {
    return { at: parts.clock.now(), size: raw.length, raw: raw.subarray(0, longestRaw) };
  }

  async function take(
    mail: InboundMail,
    place: OwnPlace,
    read: (role: AddressRole) => Promise<ParsedReturn>,
  ): Promise<void> {
    const reading = await read(place.role);
    if (reading.is === 'report') return void (await parts.keepReport(reading.report));
    if (reading.is === 'automatic' || reading.is === 'arrived') return;
    const deliveryId = await deliveryIn(place, reading);
    if (deliveryId !== null && (reading.is === 'failed' || reading.is === 'complaint')) {
      return commit({ deliveryId, reading, mail });
    }
    if (reading.is === 'delayed') return tellDelay(deliveryId, reading);
    await parts.keepMail(mail, deliveryId, reading);
  }

  /** Where it came to says whom it is about. Of a complaint to an open address only what carries our key does. */
  async function deliveryIn(place: OwnPlace, reading: ParsedReturn): Promise<string | null> {
    if (place.role === 'return-path') return place.deliveryId;
    return reading.is === 'complaint' ? parts.deliveryOf(reading.tokens) : null;
  }

  async function commit(returned: ReturnedMailRecord & { reading: Failure | Complaint }): Promise<void> {
    for (const ms of [...waitsMs, null]) {
      const outcome = await parts.record(returned);
      if (outcome === 'gone') return;
      if (outcome !== 'wait') return parts.tell(outcome.to, returned.reading, outcome);
      if (ms === null) throw new SmtpRefusal(451, '4.3.0', 'That mail is being sent just now; come again');
      await pause(ms);
    }
  }

  async function tellDelay(deliveryId: string | null, reading: Delay): Promise<void> {
    const to = deliveryId === null ? null : await parts.findDelivery(deliveryId);
    if (to) parts.tell(to, reading, null);
  }
}
