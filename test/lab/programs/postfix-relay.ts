/**
 * Postfix and OpenDKIM as a sender, well tuned: the program that Postern is compared with. Mail enters through `smtp-source`,
 * is signed by OpenDKIM as a milter over a UNIX socket, is in the queue and synced before the 250 (Postfix's default), and
 * leaves for the sinks over connections that are cached on demand.
 *
 * The tuning: no DNS and no lookup that is not needed, no delay for incoming mail (in_flow_delay), 20 concurrent deliveries to
 * a destination from the start, destinations in a table in memory, TLS off as at the sink. The mail log stays on, as Postern's
 * does. It is a private instance (postfix.ts) and needs root.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { newDkimKey } from '#accounts/domains.ts';
import { domainOf } from '../../../scripts/bench/bench-cases.ts';
import type { Stage } from '../load/stage.ts';
import type { SmtpSink } from '../mx/smtp-sink.ts';
import { until } from '../until.ts';
import { startSigner } from './opendkim.ts';
import { startPostfix } from './postfix.ts';

export interface Relay {
  /** The root processes; all others are their descendants. */
  pids: number[];
  /** Submits mails of this size over `parallel` connections, spread over the destinations, until all are accepted. */
  feed(mails: number, bytes: number, parallel: number): Promise<void>;
  /** Waits until its queue is empty. */
  drained(): Promise<unknown>;
}

const services = `
smtp      unix - - n - - smtp
scache    unix - - n - 1 scache
`;

export async function startRelay(stage: Stage, sink: SmtpSink): Promise<Relay> {
  const { directory } = stage;
  const { selector, privateKey } = await newDkimKey();
  const signing = startSigner({ directory, domain: 'sender.invalid', selector, privateKey });
  const signer = await stage.start(signing, (it) => it.stop());
  const starting = startPostfix({
    directory,
    mailboxes: [],
    pemFile: fileURLToPath(new URL('../../fixtures/mx.pem', import.meta.url)),
    settings: tuned(sink, signer.milter),
    services,
  });
  const postfix = await stage.start(starting, (it) => it.stop());
  return {
    pids: [postfix.pid, signer.pid],
    async feed(mails, bytes, parallel) {
      const { hosts } = sink;
      const share = (all: number, index: number) => Math.floor((all + index) / hosts.length);
      const feeding = hosts.map((_, index) =>
        source(stage, {
          mails: share(mails, index),
          bytes,
          sessions: Math.max(1, share(parallel, index)),
          to: `rcpt@${domainOf(index)}`,
          where: `${postfix.host}:${postfix.port}`,
        }),
      );
      await Promise.all(feeding);
    },
    drained: () =>
      until(() => isEmpty(join(directory, 'queue/active')), { what: 'the queue of Postfix to empty' }),
  };
}

/** Its queue has a file for each mail, in subdirectories by the first letters of the name if there are many. */
async function isEmpty(queue: string): Promise<boolean> {
  const files = await readdir(queue, { recursive: true, withFileTypes: true });
  return !files.some((file) => file.isFile());
}

function tuned({ hosts, port }: SmtpSink, milter: string): Record<string, string> {
  const routes = hosts.map((host, index) => `{ ${domainOf(index)} = smtp:[${host}]:${port} }`);
  return {
    mynetworks: '127.0.0.0/8',
    virtual_mailbox_domains: '',
    virtual_mailbox_maps: '',
    transport_maps: `inline:{ ${routes.join(' ')} }`,
    smtpd_milters: milter,
    milter_default_action: 'tempfail',
    in_flow_delay: '0',
    initial_destination_concurrency: '20',
    default_destination_concurrency_limit: '20',
    smtp_connection_cache_on_demand: 'yes',
    smtp_dns_support_level: 'disabled',
    smtp_tls_security_level: 'none',
    smtpd_tls_security_level: 'none',
    smtpd_client_restrictions: '',
    smtpd_relay_restrictions: 'permit_mynetworks, reject',
    smtpd_recipient_restrictions: '',
    smtputf8_enable: 'no',
    local_header_rewrite_clients: '',
  };
}

interface Feed {
  mails: number;
  bytes: number;
  sessions: number;
  to: string;
  where: string;
}

/** `-d` keeps connections open, `-N` numbers the recipients. */
async function source(stage: Stage, { mails, bytes, sessions, to, where }: Feed): Promise<void> {
  const counts = ['-s', String(Math.min(sessions, mails)), '-m', String(mails), '-l', String(bytes)];
  const args = ['-d', '-N', ...counts, '-f', 'shop@sender.invalid', '-t', to, where];
  const child = spawn('smtp-source', args, { signal: stage.interrupted, detached: true });
  let output = '';
  child.stderr.on('data', (chunk) => (output += chunk));
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`smtp-source failed: ${output}`);
}
