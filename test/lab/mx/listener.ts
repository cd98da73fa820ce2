/** A listener by itself, on loopback, in front of a handler that keeps what it is given; for what is the listener's alone. */
import type { ExecutionContext } from 'ava';
import { createMemoryBudget } from '#front/smtp/memory-budget.ts';
import { type ListenerParts, openListener } from '#front/smtp/smtp-listener.ts';
import { type Certificate, openCertificate } from '#operate/certificates/listener-certificate.ts';
import { Slots } from '#platform/base/limits/slots.ts';
import {
  type Envelope,
  type MailHandler,
  type MailSession,
  SmtpRefusal,
} from '#platform/values/mail-handler.ts';
import { manualClock } from '../clock.ts';
import { temporaryDirectory } from '../evidence.ts';

interface ReceivedMail {
  raw: Buffer;
  envelope: Envelope;
  session: MailSession<unknown>;
}

interface Options extends Partial<Omit<ListenerParts<unknown>, 'handler' | 'connectionSlots'>> {
  handler?: Partial<MailHandler<unknown>>;
  max?: number;
  perClient?: number;
}

/** Takes mail for ours.invalid, from everybody. */
const ours = /@ours\.invalid$/i;

export async function startListener(t: ExecutionContext, options: Options = {}) {
  const { handler, max = 1000, perClient = 1000, ...rest } = options;
  const taken: ReceivedMail[] = [];
  const errors: unknown[] = [];
  const listener = await openListener({
    host: '127.0.0.1',
    port: 0,
    setting: 'PORT',
    hostname: 'ours.invalid',
    implicitTls: false,
    proxies: [],
    allowClearLogin: false,
    bounds: { largest: 1024 * 1024 },
    maxRecipients: 10,
    connectionSlots: new Slots({ inAll: max, ofOne: perClient }),
    organizationSlots: new Slots({ inAll: max, ofOne: 'as many as are free' }),
    memoryBudget: createMemoryBudget({ max: 16 * 1024 * 1024, perClient: 8 * 1024 * 1024 }),
    certificate: rest.certificate ?? (await ownCertificate(t)),
    onError: (_, error) => errors.push(error),
    ...rest,
    handler: {
      authenticate: null,
      async onMailFrom() {},
      async onRcpt(address) {
        if (!ours.test(address)) throw new SmtpRefusal(550, '5.7.1', 'This server relays nothing');
      },
      async onMessage(raw, envelope, session) {
        taken.push({ raw, envelope, session });
        return 'Taken';
      },
      ...handler,
    },
  });
  t.teardown(() => listener.close());
  return { ...listener, taken, errors };
}

export async function ownCertificate(t: ExecutionContext): Promise<Certificate> {
  const dataDir = await temporaryDirectory(t);
  return openCertificate({
    certFile: null,
    keyFile: null,
    dataDir,
    hostname: 'ours.invalid',
    clock: manualClock(Date.now()),
    onError: () => {},
  });
}
