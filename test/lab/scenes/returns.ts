/** A world with an inbound port, and the hosts that send mail back to it. */
import { randomInt } from 'node:crypto';
import type { ExecutionContext } from 'ava';
import { createTransport } from 'nodemailer';
import { createReturnPath } from '#mail/returned/return-path.ts';
import { loadSecrets } from '#platform/base/secrets.ts';
import { goldenMails, goldenReturnPath } from '../golden.ts';
import { freePort } from '../load/ports.ts';
import { startWorld, type World, type WorldOptions } from './world.ts';

export interface ReturnsWorld extends World {
  /** Of the email's only delivery. */
  returnPath(emailId: string): Promise<string>;
  /** An email that was sent and delivered, and its return path. */
  delivered(to?: string): Promise<{ emailId: string; path: string }>;
  /** Hands in a mail as another host does; resolves when it was taken, rejects with the reply. */
  comesBack(to: string | string[], raw: Buffer | string, from?: string): Promise<void>;
}

export async function startReturns(t: ExecutionContext, options: WorldOptions = {}): Promise<ReturnsWorld> {
  // An address for each world, where nobody else looks for a free port.
  const host = `127.${randomInt(64, 128)}.${randomInt(256)}.${randomInt(1, 255)}`;
  const port = await freePort(host);
  const settings = {
    POSTERN_SMTP_HOST: host,
    POSTERN_INBOUND_PORT: String(port),
    ...options.settings,
  };
  const world = await startWorld(t, { ...options, settings });
  const pathOf = createReturnPath(loadSecrets(world.config), world.config.returnPathDomain);
  const transport = createTransport({ host, port, ignoreTLS: true });
  const returnPath = async (emailId: string) =>
    pathOf((await world.db('deliveries').where({ email_id: emailId }).first('id')).id);
  return {
    ...world,
    returnPath,
    async delivered(to = 'ann@there.invalid') {
      const { emailId } = (await world.send({ to })).body;
      await world.when(emailId, ({ status }) => status === 'delivered');
      return { emailId, path: await returnPath(emailId) };
    },
    async comesBack(to, raw, from = '') {
      await transport.sendMail({ envelope: { from, to: [to].flat() }, raw });
    },
  };
}

export function typesOf({ events }: { events: { type: string }[] }): string[] {
  return events.map(({ type }) => type);
}

/** A golden mail, its return path and its recipient put in another's place. */
export function goldenMail(
  name: string,
  returnPath = goldenReturnPath,
  recipient = 'ann@there.invalid',
): Buffer {
  const { raw } = goldenMails().find((one) => one.name === name)!;
  const text = raw.toString('latin1');
  const returned = text.replaceAll(new RegExp(goldenReturnPath, 'gi'), returnPath);
  return Buffer.from(returned.replaceAll('ann@example.org', recipient), 'latin1');
}
