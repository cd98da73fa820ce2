/**
 * Builds the ways in over SMTP: a listener for each port that is set, with one certificate, one bound on memory and
 * one crowd for all. main.ts hands it what becomes of the mail.
 */
import type { Clock } from './clock.ts';
import type { Config } from './config.ts';
import { openCertificate } from './inbound/certificate.ts';
import { createCrowd } from './inbound/crowd.ts';
import type { MailHandler } from './inbound/handler.ts';
import { createIntake } from './inbound/intake.ts';
import { type ListenerParts, type MailListener, openListener } from './inbound/listener.ts';

export interface ListenersParts<User> {
  config: Config;
  /** Applications' mail, by POSTERN_SUBMISSION_PORT and POSTERN_SUBMISSION_TLS_PORT. */
  submission: MailHandler<User> | null;
  /** Returned mail, complaints and reports, by POSTERN_INBOUND_PORT. A port without a handler stays shut. */
  returned: MailHandler<null> | null;
  clock: Clock;
  onTrouble(what: string, error: unknown): void;
}

export interface Listeners {
  /** Clients connected, at all of the ports. */
  clients(): number;
  close(): Promise<void>;
}

/** Of messages that come in, in all. Composed, each takes some four times its size, in the room of the API's sends. */
const mostBytes = 64 * 1024 * 1024;

/** What the API takes as a body, so that what fits one way fits the other. */
const largestMessage = 20 * 1024 * 1024;

/** RFC 5321 section 4.5.3.1.6, without the CRLF: what is longer, others refuse or cut. */
const longestLine = 998;

export async function openListeners<User>(parts: ListenersParts<User>): Promise<Listeners> {
  const { config, submission, returned, clock, onTrouble } = parts;
  const { inboundPort, submissionPort, submissionTlsPort } = config;
  const open: MailListener[] = [];
  const submits = submission && (submissionPort !== null || submissionTlsPort !== null);
  if (!submits && !(returned && inboundPort !== null)) {
    return { clients: () => 0, close: async () => {} };
  }
  const certificate = openCertificate({
    ...{ certFile: config.tlsCert, keyFile: config.tlsKey, dataDir: config.dataDir },
    ...{ hostname: config.hostname, clock, onTrouble },
  });
  const crowd = createCrowd({ most: config.smtpConnections, perClient: config.smtpPerClient });
  const listeners = {
    clients: crowd.size,
    async close() {
      certificate.stop();
      await Promise.all(open.map((one) => one.close()));
    },
  };
  const shared = {
    host: config.smtpHost,
    hostname: config.hostname,
    certificate,
    proxies: config.smtpProxies,
    mostClients: config.smtpConnections,
    crowd,
    intake: createIntake(mostBytes),
    onTrouble,
  };
  const ofApplications = {
    ...shared,
    allowClearLogin: config.submissionAllowClear,
    bounds: { largest: largestMessage, longestLine },
    // As many as a call of the API has (interface.md section 8).
    mostRecipients: 10,
  };
  const ofReturns = {
    ...shared,
    allowClearLogin: false,
    bounds: { largest: largestMessage, longestLine: null },
    mostRecipients: 100,
  };
  async function add<Anyone>(
    port: number | null,
    handler: MailHandler<Anyone> | null,
    rest: Omit<ListenerParts<Anyone>, 'port' | 'handler'>,
  ): Promise<void> {
    if (port !== null && handler) open.push(await openListener({ ...rest, port, handler }));
  }
  try {
    await add(submissionPort, submission, {
      ...ofApplications,
      setting: 'POSTERN_SUBMISSION_PORT',
      implicitTls: false,
    });
    await add(submissionTlsPort, submission, {
      ...ofApplications,
      setting: 'POSTERN_SUBMISSION_TLS_PORT',
      implicitTls: true,
    });
    await add(inboundPort, returned, { ...ofReturns, setting: 'POSTERN_INBOUND_PORT', implicitTls: false });
    return listeners;
  } catch (error) {
    await listeners.close();
    throw error;
  }
}
