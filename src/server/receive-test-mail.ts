/**
 * Test mail to `…@received.test` is received: it comes in for the organization that sent it, as mail by SMTP does, so that an
 * application can be tried without a domain. No verdict is asked for, because nothing is known of a sender.
 */
import { simulatedHost } from '#mail/deliver/smtp-out/simulated-host.ts';
import type { ReceivedReader } from '#mail/received/reading-tasks.ts';
import { recordReceived } from '#mail/received/rows/record-received.ts';
import { readSources } from '#mail/record/rows/emails.ts';
import { newId } from '#platform/base/id.ts';
import { parseMailbox } from '#platform/values/address.ts';
import type { Delivery } from '#platform/values/glossary.ts';
import { receivedTestDomain } from '#platform/values/test-route.ts';
import type { ServerContext } from './context.ts';

export async function receiveTestMail(
  { db, config, clock, eventSignal }: ServerContext,
  reader: Pick<ReceivedReader, 'mail'>,
  { emailId, orgId, recipient, from }: Delivery,
): Promise<void> {
  const [raw] = await readSources(db, emailId, 1);
  const read = raw && (await reader.mail(orgId, raw));
  if (!raw || !read) return;
  const { messageId, subject, fromHeader, summary } = read;
  const none = { result: 'none' as const, domain: null };
  const mail = {
    id: newId(),
    orgId,
    domain: receivedTestDomain,
    routeId: receivedTestDomain,
    action: 'webhook' as const,
    webhookId: null,
    recipients: [recipient],
    sender: parseMailbox(from)?.address ?? from,
    peer: simulatedHost.address,
    helo: simulatedHost.host,
    messageId,
    subject,
    fromHeader,
    inReplyTo: null,
    summary: {
      ...summary,
      verdicts: { spf: none, dkim: [], dmarc: { ...none, policy: null }, arc: { result: 'none' as const } },
      spam: null,
      tls: null,
    },
    size: raw.length,
    at: clock.now(),
    raw,
  };
  await recordReceived(db, [[mail]], config.receivedStore);
  eventSignal.notify();
}
