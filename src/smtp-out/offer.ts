/**
 * One mail offered to one host: over a session that waits for it where there is one, else over a new one.
 *
 * Holds the TLS ladder (RFC 7435): where TLS is only wished for and its handshake fails, once more in clear, and the
 * host is remembered for a day, in which its connections go in clear at once. Where TLS is demanded, neither happens.
 * A session that turns out to have been closed while it waited costs the mail nothing: it goes on over a new one.
 *
 * Decides nothing on the mail; reports where it went and how that ended.
 */
import type { Socket } from 'node:net';
import { orAborted } from '../base/abort.ts';
import { type Clock, iso } from '../base/clock.ts';
import type { PersistentCache } from '../base/persistent-cache.ts';
import type { Peer, TlsUsed } from '../glossary.ts';
import type { Destination } from '../mail/destination-shape.ts';
import { NoSource } from '../mail/ip-pool.ts';
import type { SessionResult } from '../outcome.ts';
import type { ConnectionPool, Permit } from './connection-pool.ts';
import type { Timeouts } from './deadline.ts';
import { type Opened, openSession, type Session } from './session.ts';
import { allowsClear, type Demand, type Protection } from './tls-demand.ts';
import type { Mail } from './transaction.ts';
import type { Transcript } from './transcript.ts';

export interface Target {
  name: string;
  addresses: string[];
  demand: Demand;
  /** Why the demand is what it is, where there is something to say. */
  note?: string;
}

/** What our own end is to be: of this pool of our addresses, and this address where one is wanted and can be had. */
interface OurEnd {
  pool: string;
  address: string | null;
}

/**
 * Opens a socket to one of the host's addresses; rejects with an Error that is one sentence. `source`: our own address,
 * null where the system chose it.
 */
type Dial = (
  host: { name: string; addresses: string[] },
  from: OurEnd,
  stopped: AbortSignal,
) => Promise<{ socket: Socket; address: string; source: string | null; localName: string }>;

/** Why TLS with a host was given up, and when. */
export interface TlsFailure {
  at: number;
  reason: string;
}

export interface OfferParts {
  connect: Dial;
  pool: ConnectionPool;
  tlsFailures: PersistentCache<TlsFailure>;
  clock: Clock;
  port: number;
  timeouts: Timeouts;
}

export interface DeliveryJob {
  mail: Mail;
  /** The recipient's. */
  domain: string;
  from: OurEnd;
  destination: Destination;
  /** The best first: that one is dialed; a session that waits at any of them is taken before. */
  targets: [Target, ...Target[]];
  transcript: Transcript;
  stopped: AbortSignal;
}

export interface Report {
  result: SessionResult;
  /** Whom the mail was offered to; the first address where none answered. */
  peer: Peer;
  /** Our own address; null: the system's choice, or there was no connection. */
  source: string | null;
  tls: TlsUsed | null;
}

interface NewConnection {
  opened: Opened;
  address: string;
  source: string | null;
}

const tlsFailureTtlMs = 24 * 60 * 60_000;

export function createOffer(parts: OfferParts) {
  const { pool, clock } = parts;

  async function offer(job: DeliveryJob): Promise<Report> {
    const { destination, targets, transcript, stopped } = job;
    const suits = targets.map((target) => suitOf(target, job));
    const held = await pool.acquire(destination, suits, stopped);
    if (!('session' in held)) return onNewConnection(job, held.permit);
    const { session } = held;
    const { demand } = targets.find(({ name }) => name === session.host)!;
    const protection = session.protection(demand, job.domain);
    transcript.add('note', reuseNote(session, protection));
    const { report, stale } = await transferMail(job, session, protection);
    if (!stale || stopped.aborted) return report;
    transcript.add('note', 'the host had closed this connection while it waited; over a new one');
    const next = await pool.acquire(destination, [], stopped);
    // Nothing suits, so it is a permit.
    return onNewConnection(job, (next as { permit: Permit }).permit);
  }

  async function transferMail(job: DeliveryJob, session: Session, { tls }: Protection) {
    const { result, stale } = await session.send(job.mail, job.transcript, job.stopped);
    pool.giveBack(job.destination, session);
    const { host, address, source } = session;
    return { report: { result, peer: peerOf(host, address), source, tls }, stale };
  }

  async function onNewConnection(job: DeliveryJob, permit: Permit): Promise<Report> {
    const [target] = job.targets;
    try {
      const { opened, address, source } = await connectWithTls(job, target);
      if ('session' in opened) {
        opened.session.closed.then(permit);
        return (await transferMail(job, opened.session, opened.protection)).report;
      }
      opened.closed.then(permit);
      return { result: opened.result, peer: peerOf(target.name, address), source, tls: opened.tls };
    } catch (error) {
      permit();
      if (job.stopped.aborted) throw error;
      const detail = (error as Error).message;
      job.transcript.add('note', detail);
      return {
        result: { kind: error instanceof NoSource ? 'no-source' : 'unreachable', detail },
        peer: peerOf(target.name, target.addresses[0]!),
        ...{ source: null, tls: null },
      };
    }
  }

  /** The ladder. Rejects where no address answered. */
  async function connectWithTls(job: DeliveryJob, target: Target): Promise<NewConnection> {
    const { transcript, stopped } = job;
    const { policy } = target.demand;
    if (target.note) transcript.add('note', target.note);
    const known = policy === 'opportunistic' ? await troubleOf(target.name) : null;
    if (known) {
      transcript.add('note', `no TLS with ${target.name}: it failed at ${iso(known.at)} (${known.reason})`);
    }
    const first = await open(job, target, policy !== 'off' && !known);
    if ('session' in first.opened || first.opened.result.kind !== 'tls-failed' || stopped.aborted)
      return first;
    const { detail } = first.opened.result;
    if (!allowsClear(target.demand)) {
      return { ...first, opened: { ...first.opened, result: { kind: 'tls-required', detail } } };
    }
    transcript.add('note', 'once more in clear');
    await first.opened.closed;
    const again = await open(job, { ...target, addresses: [first.address] }, false);
    // A host that does not do better in clear has another trouble.
    if ('session' in again.opened) await remember(target.name, detail);
    return again;
  }

  async function open(job: DeliveryJob, { name: host, addresses, demand }: Target, startTls: boolean) {
    const { transcript, stopped, domain, from } = job;
    transcript.add('note', `connecting to ${host} [${addresses.join(', ')}]:${parts.port}`);
    const { socket, address, source, localName } = await dial({ name: host, addresses }, from, stopped);
    const ours = source === null ? '' : ` from [${source}]`;
    if (addresses.length > 1 || source !== null) transcript.add('note', `connected to [${address}]${ours}`);
    const { timeouts } = parts;
    const opened = await openSession({
      ...{ socket, host, address, domain, demand, startTls, timeouts, transcript, stopped },
      ...{ source, sourcePool: from.pool, name: localName },
    });
    return { opened, address, source };
  }

  /** What connects after the stop is not left open. */
  async function dial(host: { name: string; addresses: string[] }, from: OurEnd, stopped: AbortSignal) {
    const connecting = parts.connect(host, from, stopped);
    try {
      return await orAborted(connecting, stopped);
    } catch (error) {
      connecting.then(({ socket }) => socket.destroy()).catch(() => {});
      throw error;
    }
  }

  /** A memory that cannot be asked costs a detour, never the mail. */
  const troubleOf = (host: string) => parts.tlsFailures.get(host).catch(() => null);

  const remember = (host: string, reason: string) =>
    parts.tlsFailures.set(host, { at: clock.now(), reason }, tlsFailureTtlMs).catch(() => {});

  const peerOf = (host: string, address: string): Peer => ({ host, address, port: parts.port });

  return offer;
}

function suitOf({ name, addresses, demand }: Target, { domain, from }: DeliveryJob) {
  return (session: Session) =>
    session.host === name &&
    addresses.includes(session.address) &&
    session.sourcePool === from.pool &&
    (from.address === null || session.source === from.address) &&
    session.protection(demand, domain).unmet === null;
}

function reuseNote({ host, address, mails }: Session, { note }: Protection): string {
  const before = mails === 1 ? 'one mail' : `${mails} mails`;
  return `over a connection to ${host} [${address}] that has carried ${before}; ${note}`;
}
