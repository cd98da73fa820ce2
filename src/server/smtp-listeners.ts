/**
 * Builds the SMTP listeners: one for each configured port, one certificate for all of them. Submission and returned mail
 * have separate memory budgets and connection limits, so that nothing that strangers do at port 25 keeps an application
 * from sending.
 */
import type { Clock } from '../base/clock.ts';
import type { Config } from '../config.ts';
import { createConnectionLimits } from '../smtp-in/connection-limits.ts';
import { openCertificate } from '../smtp-in/listener-certificate.ts';
import type { MailHandler } from '../smtp-in/mail-handler.ts';
import { createMemoryBudget } from '../smtp-in/memory-budget.ts';
import { type ListenerParts, type MailListener, openListener } from '../smtp-in/smtp-listener.ts';

export interface ListenersParts<User> {
  config: Config;
  /** Applications' mail, by POSTERN_SUBMISSION_PORT and POSTERN_SUBMISSION_TLS_PORT. */
  submission: MailHandler<User> | null;
  /** Returned mail, complaints and reports, by POSTERN_INBOUND_PORT. A port without a handler stays shut. */
  returned: MailHandler<null> | null;
  clock: Clock;
  onError(what: string, error: unknown): void;
}

export interface Listeners {
  /** Clients connected, at all of the ports. */
  clients(): number;
  close(): Promise<void>;
}

/**
 * Of messages that come in, of applications and of strangers each. An application's mail, composed, takes some four times
 * its size, in the room of the API's sends.
 */
const maxBytes = 64 * 1024 * 1024;

/** Of an application's mail: what the API takes as a body, so that what fits one way fits the other. */
const largestMessage = 20 * 1024 * 1024;

/** Of a stranger's: what is read of a returned mail is its first 4 MiB (bounces/parse/parsed-mail.ts). */
const largestReturned = 8 * 1024 * 1024;

/** One stranger may have this part of the memory and of the connections for strangers. */
const strangersPart = 8;

/** RFC 5321 section 4.5.3.1.6, without the CRLF: what is longer, others refuse or cut. */
const longestLine = 998;

export async function openListeners<User>(parts: ListenersParts<User>): Promise<Listeners> {
  const { config, submission, returned, clock, onError } = parts;
  const { inboundPort, submissionPort, submissionTlsPort } = config;
  const open: MailListener[] = [];
  const submits = submission && (submissionPort !== null || submissionTlsPort !== null);
  if (!submits && !(returned && inboundPort !== null)) {
    return { clients: () => 0, close: async () => {} };
  }
  const certificate = openCertificate({
    ...{ certFile: config.tlsCert, keyFile: config.tlsKey, dataDir: config.dataDir },
    ...{ hostname: config.hostname, clock, onError },
  });
  const { smtpConnections, smtpPerClient } = config;
  const applications = createConnectionLimits({ max: smtpConnections, perClient: smtpPerClient });
  const strangers = createConnectionLimits({
    max: smtpConnections,
    perClient: Math.min(smtpPerClient, Math.ceil(smtpConnections / strangersPart)),
  });
  const listeners = {
    clients: () => applications.size() + strangers.size(),
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
    maxClients: smtpConnections,
    onError,
  };
  const ofApplications = {
    ...shared,
    crowd: applications,
    intake: createMemoryBudget({ max: maxBytes, perClient: maxBytes / 2 }),
    allowClearLogin: config.submissionAllowClear,
    bounds: { largest: largestMessage, longestLine },
    // As many as a call of the API has (docs/api.md section 8).
    maxRecipients: 10,
  };
  const ofReturns = {
    ...shared,
    crowd: strangers,
    intake: createMemoryBudget({ max: maxBytes, perClient: maxBytes / strangersPart }),
    allowClearLogin: false,
    bounds: { largest: largestReturned, longestLine: null },
    maxRecipients: 100,
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
