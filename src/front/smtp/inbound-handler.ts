/**
 * The handler of port 25: gives each recipient to its side. Returned mail (bounces, complaints, reports) comes first, with its own
 * memory and size; mail for applications has others, so that a flood of it takes nothing from bounces. A mail may be for both.
 */

import { maxReceivedBytes } from '#mail/received/received-mail.ts';
import { isPostmaster } from '#mail/received/receiving-route.ts';
import type { ReceptionHandler } from '#mail/received/reception-handler.ts';
import type { BounceHandler } from '#mail/returned/bounce-handler.ts';
import { clientNetwork } from '#platform/base/net/client-network.ts';
import {
  type Envelope,
  type MailHandler,
  type MailSession,
  type MessageBounds,
  SmtpRefusal,
} from '#platform/values/mail-handler.ts';
import { createMemoryBudget, inBoth } from './memory-budget.ts';

interface InboundParts {
  bounces: BounceHandler;
  reception: ReceptionHandler;
  /** Whether any domain receives mail. */
  isReceiving(): Promise<boolean>;
}

/** Maximum size of a returned mail, of which the first 4 MiB are read (mail/returned/parse/parsed-mail.ts). */
export const maxBounceBytes = 8 * 1024 * 1024;

/** Memory for mail of applications that is on its way in or being read. */
const maxBytes = 96 * 1024 * 1024;
/** One network can send one mail of the largest size at a time. */
const maxOfNetwork = maxBytes / 3;

export class InboundHandler implements MailHandler<null> {
  readonly authenticate = null;
  readonly #parts: InboundParts;
  readonly #ofNetworks = createMemoryBudget({ max: maxBytes, perClient: maxOfNetwork });
  readonly #ofOrganizations = createMemoryBudget({ max: maxBytes, perClient: 'as many as are free' });

  constructor(parts: InboundParts) {
    this.#parts = parts;
  }

  async largestMessage(): Promise<number> {
    return (await this.#parts.isReceiving()) ? maxReceivedBytes : maxBounceBytes;
  }

  async onMailFrom(): Promise<void> {
    await this.#parts.bounces.onMailFrom();
  }

  async onRcpt(address: string, session: MailSession<null>): Promise<void> {
    const { bounces, reception } = this.#parts;
    // RFC 5321 section 4.5.1: postmaster exists. It is the operator's, unless a route of the domain takes it.
    if (isPostmaster(address) && (await reception.takes(address, session))) return;
    const refusal = await bounces.onRcpt(address).then(
      () => null,
      (error) => error,
    );
    if (refusal === null) return requireBounceSize(session.transaction.size);
    const isElsewhere = refusal instanceof SmtpRefusal && refusal.code === 550;
    if (!isElsewhere || !(await reception.takes(address, session))) throw refusal;
  }

  boundsOf(session: MailSession<null>): MessageBounds | null {
    const [first] = this.#parts.reception.acceptedIn(session);
    if (!first) return null;
    const network = clientNetwork(session.client.address);
    const { orgId } = first.route;
    const line = `${orgId} ${network}`;
    return {
      largest: maxReceivedBytes,
      hold: inBoth(this.#ofNetworks.open(network), this.#ofOrganizations.open(orgId, line)),
    };
  }

  /** Returned mail first: if it is recorded twice because the other fails, nothing changes. */
  async onMessage(raw: Buffer, envelope: Envelope, session: MailSession<null>): Promise<string> {
    const { bounces, reception } = this.#parts;
    const accepted = new Set(reception.acceptedIn(session).map(({ address }) => address));
    const to = envelope.to.filter((address) => !accepted.has(address));
    if (to.length > 0) {
      requireBounceSize(raw.length);
      await bounces.onMessage(raw, { ...envelope, to }, session);
    }
    if (accepted.size > 0) await reception.onMessage(raw, envelope, session);
    return 'Taken';
  }
}

function requireBounceSize(size: number | null): void {
  if (size !== null && size > maxBounceBytes)
    throw new SmtpRefusal(552, '5.3.4', `The message is larger than ${maxBounceBytes} bytes`);
}
