/** Postfix (postfix.ts) as a receiver: with OpenDKIM, which verifies signatures, or with postgrey, which defers unknown senders. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { startOpenDkim } from './opendkim.ts';
import { startPostfix } from './postfix.ts';
import { startPostgrey } from './postgrey.ts';
import type { Receiver, ReceiverOptions } from './receiver.ts';

/** OpenDKIM asks the DNS server at this port of 127.0.0.1, and writes its result into the header Authentication-Results. */
export async function startVerifyingPostfix(options: ReceiverOptions, dnsPort: number): Promise<Receiver> {
  const { directory, hostname } = options;
  const verifier = await startOpenDkim({ directory, dnsPort, hostname });
  const settings = { smtpd_milters: verifier.milter, milter_default_action: 'tempfail' };
  return startBeside(verifier, options, settings);
}

export async function startGreylistingPostfix(
  options: ReceiverOptions,
  delaySeconds: number,
): Promise<Receiver> {
  const postgrey = await startPostgrey(options.directory, delaySeconds);
  const settings = { smtpd_recipient_restrictions: postgrey.restriction };
  const postfix = await startBeside(postgrey, options, settings);
  return {
    ...postfix,
    version: `${postfix.version}, ${postgrey.version}`,
    log: async () => (await postfix.log()) + postgrey.log(),
  };
}

/** `helper` is a program that this Postfix asks. It stops with Postfix, or if Postfix does not start. */
async function startBeside(
  helper: { stop(): Promise<unknown> },
  options: ReceiverOptions,
  settings: Record<string, string>,
): Promise<Receiver> {
  try {
    const { domain, mailboxes } = options;
    const addresses = mailboxes.map((mailbox) => `${mailbox}@${domain}`);
    const { stdout } = await promisify(execFile)('postconf', ['-d', '-h', 'mail_version']);
    const { received, log, stop } = await startPostfix({ ...options, mailboxes: addresses, settings });
    return {
      version: `Postfix ${stdout.trim()}`,
      received: async (mailbox) => (await received(`${mailbox}@${domain}`))[0]!,
      log,
      async stop() {
        await stop();
        await helper.stop();
      },
    };
  } catch (error) {
    await helper.stop();
    throw error;
  }
}
