/**
 * Builds port 25: returned mail and, beside it, the reception of mail for applications (addresses → a reading thread → verdicts
 * → one commit → the event).
 */
import { findReceivingDomain, hasReceivingDomain } from '#accounts/rows/receiving-domains.ts';
import { InboundHandler } from '#front/smtp/inbound-handler.ts';
import { createReceivedReader } from '#mail/received/reading-tasks.ts';
import { routeFor } from '#mail/received/receiving-route.ts';
import { ReceptionHandler, type TakenMail } from '#mail/received/reception-handler.ts';
import { limitsFrom, ReceptionRates } from '#mail/received/reception-limits.ts';
import { findAnswered } from '#mail/received/rows/answered-emails.ts';
import { storedBytes } from '#mail/received/rows/received-mails.ts';
import { routesOfDomain } from '#mail/received/rows/receiving-routes.ts';
import { type Reception, recordReceived } from '#mail/received/rows/record-received.ts';
import { createSpamFilter } from '#mail/received/spam-filter.ts';
import { createJudge } from '#mail/received/verdicts.ts';
import type { BounceHandler } from '#mail/returned/bounce-handler.ts';
import { cachedAnswer } from '#platform/base/bounded-cache.ts';
import { Slots } from '#platform/base/limits/slots.ts';
import type { Resolve } from '#platform/base/net/resolve.ts';
import { groupCommit } from '#platform/database/engine/group-commit.ts';
import type { MailLog } from '#platform/values/mail-log.ts';
import { createMessageIdReader } from '#platform/values/message-id.ts';
import type { ServerContext } from './context.ts';

/** Memory limits of the thread that reads a mail. */
const resourceLimits = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 32 };

const maxCached = 10_000;

/** MiB of mails that are being read and kept; one organization that is alone can have half of them. */
const maxInWork = 64;

export type Receiving = ReturnType<typeof createReceiving>;

export function createReceiving(
  context: ServerContext,
  { bounces, hasSpace }: { bounces: BounceHandler; hasSpace(): boolean },
) {
  const { config, db, secrets, metrics, mailLog, eventSignal, clock, startThread, onError } = context;
  const readMessageId = createMessageIdReader(secrets);
  const entry = new URL('../mail/received/reading-thread.ts', import.meta.url);
  const reader = createReceivedReader({ spawn: () => startThread(entry, { resourceLimits }), onError });
  const findDomain = cachedAnswer((name) => findReceivingDomain(db, name), maxCached);
  const routesOf = cachedAnswer((key) => {
    const [orgId, name] = key.split(' ');
    return routesOfDomain(db, orgId!, name!);
  }, maxCached);
  const isReceiving = cachedAnswer(() => hasReceivingDomain(db), 1);
  const record = groupCommit(
    metrics.timed('received', (list: Reception[]) => recordReceived(db, list, config.receivedStore)),
  );
  const reception = new ReceptionHandler({
    hostname: config.hostname,
    findDomain,
    findRoute: async ({ orgId, name }, address) => routeFor(await routesOf(`${orgId} ${name}`), address),
    rates: new ReceptionRates(limitsFrom(config.receivedPerMinute), clock),
    slots: new Slots({ inAll: maxInWork, ofOne: 'as many as are free' }),
    hasSpace,
    storeBytes: config.receivedStore,
    storedBytes: (orgId) => storedBytes(db, orgId),
    reader,
    judge: createJudge(shared(context.resolve)),
    spamVerdict: createSpamFilter({ url: config.spamFilter, clock, onError }),
    findAnswered: (orgId, messageIds) => findAnswered(db, orgId, messageIds, readMessageId),
    async record(mails) {
      const result = await record(mails);
      eventSignal.notify();
      return result;
    },
    report(taken) {
      metrics.meters.receivedMails.inc({ action: taken.action });
      logReceived(mailLog, taken);
    },
    stopping: context.stopping,
    clock,
  });
  return {
    handler: new InboundHandler({ bounces, reception, isReceiving: () => isReceiving('') }),
    /** Called after the listener has closed. */
    close: () => reader.close(),
  };
}

/** Mails that come together are often of one sender: look-ups are shared for a second, also those that find nothing. */
function shared(resolve: Resolve): Resolve {
  const ask = cachedAnswer(async (key) => {
    const [type, name] = key.split(/ (.*)/s);
    return resolve(name!, type).then(
      (records) => ({ records }),
      (error: unknown) => ({ error }),
    );
  }, maxCached);
  return async (name, type = 'A') => {
    const answer = await ask(`${type} ${name}`);
    if ('error' in answer) throw answer.error;
    return answer.records;
  };
}

function logReceived(mailLog: MailLog, { id, orgId, action, sender, recipients, peer }: TakenMail): void {
  for (const recipient of recipients)
    mailLog.write(
      'received',
      `from <${sender}> for <${recipient}>: ${action === 'drop' ? 'dropped' : 'kept'}`,
      {
        orgId,
        recipient,
        from: sender,
        address: peer,
        category: action,
        ...(id !== undefined && { receivedId: id }),
      },
    );
}
