/** Postfix (postfix.ts) as one of the receivers: plain, and with postgrey, which defers unknown senders. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { startPostfix } from './postfix.ts';
import { startPostgrey } from './postgrey.ts';
import type { Receiver, ReceiverOptions } from './receiver.ts';

export async function startPlainPostfix(
  options: ReceiverOptions,
  settings: Record<string, string> = {},
): Promise<Receiver> {
  const { domain, mailboxes } = options;
  const addresses = mailboxes.map((mailbox) => `${mailbox}@${domain}`);
  const { stdout } = await promisify(execFile)('postconf', ['-d', '-h', 'mail_version']);
  const { received, log, stop } = await startPostfix({ ...options, mailboxes: addresses, settings });
  return {
    version: `Postfix ${stdout.trim()}`,
    received: async (mailbox) => (await received(`${mailbox}@${domain}`))[0]!,
    log,
    stop,
  };
}

export async function startGreylistingPostfix(
  options: ReceiverOptions,
  delaySeconds: number,
): Promise<Receiver> {
  const postgrey = await startPostgrey(options.directory, delaySeconds);
  try {
    const settings = { smtpd_recipient_restrictions: postgrey.restriction };
    const postfix = await startPlainPostfix(options, settings);
    return {
      ...postfix,
      version: `${postfix.version}, ${postgrey.version}`,
      log: async () => (await postfix.log()) + postgrey.log(),
      async stop() {
        await postfix.stop();
        await postgrey.stop();
      },
    };
  } catch (error) {
    await postgrey.stop();
    throw error;
  }
}
