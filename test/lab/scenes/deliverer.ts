/**
 * The delivery path without the rest of the program: deliver.ts with a pool of its own, real sockets, and a route
 * that the test writes down. Ends with the test.
 */
import { once } from 'node:events';
import net from 'node:net';
import type { ExecutionContext } from 'ava';
import { createDeliver } from '#mail/deliver/deliver.ts';
import type { Route } from '#mail/deliver/route/route.ts';
import { ConnectionCache } from '#mail/deliver/smtp-out/connection-cache.ts';
import type { SessionTimeouts } from '#mail/deliver/smtp-out/deadline.ts';
import { createOffer } from '#mail/deliver/smtp-out/offer.ts';
import { forgetTlsFailure, type TlsFailure } from '#mail/deliver/smtp-out/tls-failure.ts';
import { systemClock } from '#platform/base/clock.ts';
import type { PersistentCache } from '#platform/base/persistent-cache.ts';
import { defaultTimeouts } from '#platform/settings/durations.ts';
import type { DestinationShape } from '#platform/values/destination-shape.ts';
import type { Attempt, Delivery } from '#platform/values/glossary.ts';

const defaultShape: DestinationShape = {
  connections: 5,
  startWith: 5,
  perMinute: null,
  mailsPerConnection: 100,
  idleMs: 300_000,
  tls: 'opportunistic',
};

type HostLiteral = Partial<Extract<Route, { hosts: unknown }>['hosts'][number]>;

export interface DelivererOptions {
  port: number;
  hosts?: HostLiteral[];
  shape?: Partial<DestinationShape>;
  timeouts?: Partial<SessionTimeouts>;
  /** Shared by two of them, they remember alike. */
  memory?: PersistentCache<TlsFailure>;
  readMessage?: () => Promise<Buffer>;
}

type Memory<Value> = PersistentCache<Value> & { values: Map<string, Value>; ttls: Map<string, number> };

export function memory<Value>(): Memory<Value> {
  const values = new Map<string, Value>();
  const ttls = new Map<string, number>();
  return {
    values,
    ttls,
    get: async (name) => values.get(name) ?? null,
    set: async (name, value, ttlMs) => {
      ttls.set(name, ttlMs);
      if (ttlMs > 0) values.set(name, value);
      else values.delete(name);
    },
  };
}

/** One address of the host, in their order; each that fails is named, as production's errors do. */
async function connect({ name, addresses }: { name: string; addresses: string[] }, port: number) {
  const errors: string[] = [];
  for (const address of addresses) {
    const socket = net.connect({ host: address, port });
    try {
      await once(socket, 'connect');
      return { socket, address, source: null, localName: 'postern.invalid' };
    } catch (error) {
      errors.push(`${name} [${address}]: ${(error as NodeJS.ErrnoException).code}`);
    }
  }
  throw new Error(errors.join(', '));
}

export function startDeliverer(t: ExecutionContext, options: DelivererOptions) {
  const { port, hosts = [{}], memory: tlsTrouble = memory() } = options;
  const shape = { ...defaultShape, ...options.shape };
  const connections = new ConnectionCache();
  const forgotten: string[] = [];
  const sockets = new Set<net.Socket>();
  const stop = new AbortController();
  let made = 0;
  let max = 0;
  const { deliver } = createDeliver({
    routes: {
      find: async () => ({
        destination: { name: 'mx1.invalid', shape },
        hosts: hosts.map((host, index) => ({
          name: `mx${index + 1}.invalid`,
          addresses: [`127.0.0.${index + 2}`],
          tls: { policy: 'opportunistic' },
          ...host,
        })),
      }),
      forget: (domain) => forgotten.push(domain),
    },
    simulate: async () => ({ kind: 'internal', detail: 'not a test mail', afterDot: false }),
    offer: createOffer({
      connect: async (host) => {
        const opened = await connect(host, port);
        sockets.add(opened.socket);
        max = Math.max(max, sockets.size);
        opened.socket.once('close', () => sockets.delete(opened.socket));
        return opened;
      },
      connections,
      tlsFailures: tlsTrouble,
      clock: systemClock,
      port,
      timeouts: { ...defaultTimeouts, ...options.timeouts },
    }),
    readMessage: options.readMessage ?? (async () => Buffer.from('Subject: hello\r\n\r\nHello\r\n')),
    returnPath: (id) => `b-${id}@postern.invalid`,
    poolOf: () => 'default',
    onTlsWanted: (host) => void forgetTlsFailure(tlsTrouble, host),
    onAttempted: () => {},
    listsTlsSessions: () => true,
    clock: systemClock,
    port,
  });
  t.teardown(() => connections.close());
  return {
    pool: connections,
    forgotten,
    /** Open now. */
    sockets,
    /** The most that were open at once. */
    max: () => max,
    stop,
    deliver: (fields: Partial<Delivery> = {}): Promise<Attempt> =>
      deliver({ ...plainDelivery(++made), ...fields }, stop.signal),
  };
}

function plainDelivery(n: number): Delivery {
  return {
    id: `delivery-${n}`,
    emailId: `email-${n}`,
    orgId: 'org',
    messageId: 'message',
    recipient: `user${n}@there.invalid`,
    domain: 'there.invalid',
    from: 'app@sender.invalid',
    tags: {},
    attempts: 0,
    createdAt: 0,
    dueAt: 0,
    expiresAt: Number.MAX_SAFE_INTEGER,
    tls: 'opportunistic',
  };
}

/** What an attempt's transcript notes, and what was said. */
export const said = ({ transcript }: Attempt) => transcript.map(({ text }) => text).join('\n');
