/**
 * Accepts a send in the process of a command, with the checks and the commit of the server (accept.ts). Its deliveries are
 * due in the database, where a running server finds them within a second. It is not counted against the limits of API
 * requests, and the mail log does not have its acceptance: only the server writes that.
 */

import { findDomain, firstDomainNames } from '#accounts/rows/domains-table.ts';
import { findStream } from '#accounts/rows/streams.ts';
import { createSeal, sealMessage } from '#accounts/seal.ts';
import { namesForRefusal } from '#accounts/sender.ts';
import { createTestSender } from '#accounts/test-sender.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { type Accept, createAccept } from '#mail/accept/accept.ts';
import { createFeedbackId } from '#mail/accept/feedback-id.ts';
import { acceptAll, dryRun } from '#mail/accept/rows/acceptance.ts';
import { systemClock } from '#platform/base/clock.ts';
import type { Send } from '#platform/database/tables/send-record.ts';
import { createMessageId } from '#platform/values/message-id.ts';
import { createOrderComposer } from '#server/compose-orders.ts';

/** The owner of the leases of a send that starts leased, which none does here. */
const node = 'command line';

export async function createAcceptHere(context: CommandContext): Promise<Accept> {
  const db = await context.db();
  const config = context.config();
  const secrets = context.secrets();
  const policy = { keepMs: config.idempotencyKeep, lowShare: config.creditsLow / 100 };
  const compose = createOrderComposer(secrets);
  return createAccept({
    findDomain: (orgId, name) => findDomain(db, orgId, name),
    domainNames: (orgId) => firstDomainNames(db, orgId, namesForRefusal),
    findStream: (orgId, name) => findStream(db, orgId, name),
    testSender: createTestSender(secrets),
    compose: async (order) => compose(order),
    unsubscribeDomain: config.returnPathDomain,
    trackingBase: (host) => (host ? `https://${host}` : config.baseUrl),
    sealMessage: sealMessage.bind(null, createSeal(secrets)),
    commit: async (send: Send) => (await acceptAll(db, [send], policy))[0]!,
    dryRun: (send) => dryRun(db, send, policy),
    admit: () => ({ startState: 'due', settle() {} }),
    onScheduled() {},
    onAccepted() {},
    onRepeated() {},
    clock: systemClock,
    textFromHtml: config.textFromHtml,
    messageIdOf: createMessageId(secrets, config.hostname),
    feedbackIdOf: createFeedbackId(config.returnPathDomain),
    maxAgeMs: config.mtaMaxAge,
    allIsTest: false,
    node,
    leaseMs: 0,
  });
}
