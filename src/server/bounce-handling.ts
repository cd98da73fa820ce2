/**
 * Builds the handling of returned mail: addresses → a parser thread → one commit → the mail log. start.ts passes the handler
 * to the listener of POSTERN_INBOUND_PORT.
 */

import { findReceivingDomain } from '#accounts/rows/receiving-domains.ts';
import { isReturnPath } from '#accounts/rows/return-paths.ts';
import { simulatedHost } from '#mail/deliver/smtp-out/simulated-host.ts';
import { subscriptionOf, unsubscribe } from '#mail/record/rows/unsubscribes.ts';
import { createTrackingLinks } from '#mail/record/tracking/tracking-links.ts';
import { BounceHandler, type BounceHandlerParts } from '#mail/returned/bounce-handler.ts';
import { logBounce } from '#mail/returned/bounce-log-lines.ts';
import { createDeliveryOf } from '#mail/returned/complaint-tokens.ts';
import { createIsolatedParser } from '#mail/returned/isolated-parser.ts';
import { createReturnPathReader, unsubscribeAddress } from '#mail/returned/return-path.ts';
import { keepReport } from '#mail/returned/rows/domain-reports-table.ts';
import {
  deliveriesOf,
  findBouncedDelivery,
  type IncomingBounce,
  recordBounces,
} from '#mail/returned/rows/record-bounces.ts';
import { keepMail } from '#mail/returned/rows/returned-mails.ts';
import { createServiceAddressReader } from '#mail/returned/service-addresses.ts';
import { groupCommit } from '#platform/database/engine/group-commit.ts';
import { createMessageIdReader } from '#platform/values/message-id.ts';
import type { ServerContext } from './context.ts';

/** Memory limits of the thread that parses a mail. */
const resourceLimits = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 32 };

export function createBounceHandling(context: ServerContext) {
  const { config, db, secrets, mailLog, metrics, log, eventSignal, clock, startThread, onError } = context;
  const readReturnPath = createReturnPathReader(secrets);
  const links = createTrackingLinks(secrets);
  const entry = new URL('../mail/returned/parser-thread.ts', import.meta.url);
  const newParser = () =>
    createIsolatedParser({ spawn: () => startThread(entry, { resourceLimits }), onError });
  // Anyone can write to the public addresses. They have a parser of their own, so that such mail never delays a bounce,
  // which comes to a return path with our key.
  const parsers = { returnPath: newParser(), public: newParser() };
  const record = groupCommit(
    metrics.timed('returned', (list: IncomingBounce[]) => recordBounces(db, list, config.suppressAfter)),
  );
  const report: BounceHandlerParts['report'] = (to, reading, outcome) =>
    logBounce({ mailLog, note: (text) => log.info(text) }, to, reading, outcome);
  const handler = new BounceHandler({
    readAddress: createServiceAddressReader(
      {
        ...config,
        isReturnPath: (name) => isReturnPath(db, name),
        isReceiving: async (name) => (await findReceivingDomain(db, name)) !== null,
      },
      readReturnPath,
      createReturnPathReader(secrets, unsubscribeAddress),
    ),
    unsubscribe: createUnsubscribeByMail(context),
    findDelivery: (id) => findBouncedDelivery(db, id),
    async read(bytes, role, sender) {
      const parser = role === 'return-path' ? parsers.returnPath : parsers.public;
      const reading = await parser.read(bytes, role, sender);
      metrics.returned(reading);
      return reading;
    },
    deliveryOf: createDeliveryOf({
      returnPath: readReturnPath,
      messageId: createMessageIdReader(secrets),
      link: (kind, token) => links.read(kind, token)?.deliveryId ?? null,
      deliveriesOf: (emailId) => deliveriesOf(db, emailId),
    }),
    record,
    keepMail(mail, deliveryId, reading) {
      if (reading.kind === 'letter' && reading.why)
        log.warn(
          `mail to ${mail.recipient} from ${mail.sender || '<>'}: ${reading.why}; see \`postern returned list\``,
        );
      return keepMail(db, mail, deliveryId, reading);
    },
    async keepReport(report) {
      const { kind, domain, reporter } = report;
      const kept = await keepReport(db, report, [config.returnPathDomain, config.hostname], clock.now());
      log.info(`report (${kind}) about ${domain} from ${reporter}: ${kept}`);
    },
    report,
    clock,
  });
  return {
    handler,
    /** The complaint by mail about this delivery, for test mail. */
    async complain(deliveryId: string) {
      const incoming = simulatedComplaint(deliveryId, config.returnPathDomain, clock.now());
      const outcome = await record(incoming);
      eventSignal.notify();
      if (typeof outcome === 'object') report(outcome.to, incoming.reading, outcome);
    },
    /** Called after the listener has closed. */
    async close() {
      await Promise.all([parsers.returnPath.close(), parsers.public.close()]);
    },
  };
}

function createUnsubscribeByMail({ db, clock, eventSignal }: ServerContext) {
  return async (deliveryId: string) => {
    const subscription = await subscriptionOf(db, deliveryId);
    if (!subscription) return;
    await unsubscribe(db, subscription, { via: 'mail', now: clock.now() });
    eventSignal.notify();
  };
}

function simulatedComplaint(deliveryId: string, domain: string, at: number) {
  const raw = Buffer.from('Test mail: the recipient complained, as its address asked.\r\n');
  return {
    deliveryId,
    reading: {
      kind: 'complaint',
      format: 'arf',
      feedbackType: 'abuse',
      reportedBy: simulatedHost.host,
      tokens: [],
    },
    mail: {
      sender: '',
      recipient: `postmaster@${domain}`,
      peer: simulatedHost.address,
      at,
      size: raw.length,
      raw,
    },
  } satisfies IncomingBounce;
}
