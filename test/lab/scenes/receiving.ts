/** A world whose tenant receives the mail of a domain, and hosts that send it. */
import type { ExecutionContext } from 'ava';
import { insertDomain, setDomainStatus } from '#accounts/rows/domains-table.ts';
import { setDomainReceives } from '#accounts/rows/receiving-domains.ts';
import { addRoute, type RouteRequest } from '#mail/received/define-route.ts';
import type { ReceivedMail, ReceivingRoute } from '#mail/received/received-mail.ts';
import { listReceived } from '#mail/received/rows/received-mails.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { connectSmtp, type SmtpClient, type SmtpClientOptions } from '../mx/smtp-client.ts';
import { startReturns } from './returns.ts';
import type { WorldOptions } from './world.ts';

export async function startReceiving(t: ExecutionContext, options: WorldOptions = {}) {
  const world = await startReturns(t, options);
  const { db, orgId } = world;
  await receiveAt(db, orgId, 'x.invalid');
  const { smtpHost: host, inboundPort: port } = world.config;
  const connect = async (more: SmtpClientOptions = {}): Promise<SmtpClient> => {
    const talk = await connectSmtp(port!, { host: host!, ...more });
    t.teardown(() => talk.close());
    await talk.says('EHLO there.invalid\r\n', '250');
    return talk;
  };
  return {
    ...world,
    connect,
    route: (request: Partial<RouteRequest> = {}): Promise<ReceivingRoute> =>
      addRoute(db, orgId, { pattern: 'x.invalid', action: 'webhook', ...request }, world.clock.now()),
    /** Sends a mail; the last reply. A refused recipient ends it. */
    async receives(
      raw: Buffer | string,
      { to = ['orders@x.invalid'], from = 'ann@there.invalid', talk = null as SmtpClient | null } = {},
    ) {
      const client = talk ?? (await connect());
      const replies = [await client.says(`MAIL FROM:<${from}>\r\n`, '')];
      for (const one of to) replies.push(await client.says(`RCPT TO:<${one}>\r\n`, ''));
      if (replies.some((reply) => !reply.startsWith('250'))) {
        await client.says('RSET\r\n', '250');
        return replies.find((reply) => !reply.startsWith('250'))!;
      }
      await client.says('DATA\r\n', '354');
      client.write(stuffed(raw));
      return client.says('.\r\n', '');
    },
    kept: (of = orgId): Promise<ReceivedMail[]> => listReceived(db, of, { limit: 100 }),
  };
}

/** A verified domain that receives. */
export async function receiveAt(db: Db, orgId: string, name: string): Promise<string> {
  const dkim = { dkimSelector: 's', dkimPublicKey: '', dkimPrivateKey: '' };
  const id = (await insertDomain(db, { orgId, name, ...dkim }, 1))!;
  await setDomainStatus(db, id, 'verified', 1);
  await setDomainReceives(db, id, true);
  return id;
}

/** As a client sends it after DATA, up to the final dot. */
function stuffed(raw: Buffer | string): Buffer {
  const text = Buffer.isBuffer(raw) ? raw.toString('latin1') : raw;
  const whole = text === '' || text.endsWith('\r\n') ? text : `${text}\r\n`;
  return Buffer.from(whole.replace(/^\./gm, '..'), 'latin1');
}
