/** Makes posts of received mail in a command, which has no other work that a mail could hold up. */
import type { CommandContext } from '#cli/command-context.ts';
import { receivedLinks } from '#mail/received/received-links.ts';
import { createReceivedBodies, type MakeReceivedBody } from '#mail/webhooks/received/received-bodies.ts';
import { writeReceived } from '#mail/webhooks/received/write-received.ts';
import { systemClock } from '#platform/base/clock.ts';

export async function receivedBodies({ db, config, secrets }: CommandContext): Promise<MakeReceivedBody> {
  const { baseUrl } = config();
  return createReceivedBodies({
    db: await db(),
    links: receivedLinks(secrets(), () => baseUrl),
    write: async (_orgId, raw, order) => writeReceived(raw, order),
    clock: systemClock,
  });
}
