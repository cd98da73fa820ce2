/**
 * Builds the SMTP listeners: one for each configured port, one certificate for all of them. Submission and what other mail
 * servers send have separate memory budgets and connection limits, so that traffic on port 25 cannot keep an application
 * from sending.
 */

import { maxBounceBytes } from '#front/smtp/inbound-handler.ts';
import { createMemoryBudget } from '#front/smtp/memory-budget.ts';
import { type ListenerParts, type MailListener, openListener } from '#front/smtp/smtp-listener.ts';
import type { Certificate } from '#operate/certificates/listener-certificate.ts';
import { Slots } from '#platform/base/limits/slots.ts';
import type { Config } from '#platform/settings/config.ts';
import type { MailHandler } from '#platform/values/mail-handler.ts';

export interface ListenersParts<User> {
  config: Config;
  /** Mail of applications, at POSTERN_SUBMISSION_PORT and POSTERN_SUBMISSION_TLS_PORT. */
  submission: MailHandler<User> | null;
  /** What other mail servers send, at POSTERN_INBOUND_PORT. A port without a handler stays closed. */
  inbound: MailHandler<null> | null;
  /** A development server: programs that use STARTTLS wherever it is offered would not trust its certificate. */
  isForDevelopment?: boolean;
  /** Called if any port is open; it is not stopped here. */
  openCertificate(): Certificate;
  onError(what: string, error: unknown): void;
}

export interface Listeners {
  /** Number of connected clients, over all ports. */
  clients(): number;
  close(): Promise<void>;
}

/**
 * Memory for incoming messages of applications, and as much again for returned mail; received mail has its own
 * (front/smtp/inbound-handler.ts). Composing an application's mail takes
 * about four times its size, which counts against the limit of API sends (front/http/admission.ts).
 */
const maxBytes = 64 * 1024 * 1024;

/** Maximum size of a submitted message: the same as an API body, so that a mail fits both ways or neither. */
const maxMessageBytes = 20 * 1024 * 1024;

/** One client may use 1/8 of the memory for returned mail, and of the connections on port 25. */
const strangerShare = 8;

export async function openListeners<User>(parts: ListenersParts<User>): Promise<Listeners> {
  const { config, submission, inbound, isForDevelopment = false, onError } = parts;
  const { inboundPort, submissionPort, submissionTlsPort } = config;
  const open: MailListener[] = [];
  const submits = submission && (submissionPort !== null || submissionTlsPort !== null);
  if (!submits && !(inbound && inboundPort !== null)) {
    return { clients: () => 0, close: async () => {} };
  }
  const certificate = parts.openCertificate();
  const limits = limitsOf(config);
  const listeners = {
    clients: () =>
      Object.values(limits)
        .flatMap(({ connectionSlots, organizationSlots }) => [connectionSlots, organizationSlots])
        .reduce((sum, { taken }) => sum + taken.total, 0),
    async close() {
      await Promise.all(open.map((one) => one.close()));
    },
  };
  const shared = {
    host: config.smtpHost,
    hostname: config.hostname,
    certificate,
    hidesStartTls: isForDevelopment,
    proxies: config.smtpProxies,
    onError,
  };
  async function add<Anyone>(
    port: number | null,
    handler: MailHandler<Anyone> | null,
    rest: Omit<ListenerParts<Anyone>, 'port' | 'handler'>,
  ): Promise<void> {
    if (port !== null && handler) open.push(await openListener({ ...rest, port, handler }));
  }
  const forSubmission = { ...shared, ...limits.submission };
  const forInbound = { ...shared, ...limits.inbound };
  try {
    await add(submissionPort, submission, {
      ...forSubmission,
      setting: 'POSTERN_SUBMISSION_PORT',
      implicitTls: false,
    });
    await add(submissionTlsPort, submission, {
      ...forSubmission,
      setting: 'POSTERN_SUBMISSION_TLS_PORT',
      implicitTls: true,
    });
    await add(inboundPort, inbound, { ...forInbound, setting: 'POSTERN_INBOUND_PORT', implicitTls: false });
    return listeners;
  } catch (error) {
    await listeners.close();
    throw error;
  }
}

function limitsOf({ smtpConnections, smtpPerClient, submissionAllowClear, submissionRecipients }: Config) {
  return {
    submission: {
      connectionSlots: new Slots({ inAll: smtpConnections, ofOne: smtpPerClient }),
      organizationSlots: new Slots({ inAll: smtpConnections, ofOne: 'as many as are free' }),
      memoryBudget: createMemoryBudget({ max: maxBytes, perClient: maxBytes / 2 }),
      allowClearLogin: submissionAllowClear,
      bounds: { largest: maxMessageBytes },
      maxRecipients: submissionRecipients,
    },
    inbound: {
      connectionSlots: new Slots({
        inAll: smtpConnections,
        ofOne: Math.min(smtpPerClient, Math.ceil(smtpConnections / strangerShare)),
      }),
      organizationSlots: new Slots({}),
      memoryBudget: createMemoryBudget({ max: maxBytes, perClient: maxBytes / strangerShare }),
      allowClearLogin: false,
      bounds: { largest: maxBounceBytes },
      maxRecipients: 100,
    },
  };
}
