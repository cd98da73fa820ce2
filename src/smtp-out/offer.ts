/**
 * Offers one mail to one host, over an idle session if a suitable one exists, else over a new connection.
 *
 * Falls back from TLS to clear text (RFC 7435): if TLS is only preferred and its handshake fails, it connects once more
 * without TLS and for a day uses no TLS with that host. If TLS is demanded, it does neither. If an idle session turns
 * out to be closed, the mail goes over a new connection and loses nothing.
 *
 * Decides nothing about the mail; reports which host it was offered to and the result.
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
  /** A remark on the demand for the transcript, if there is one. */
  note?: string;
}

/** Our end of the connection: the IP pool, and the address of it that is preferred, if any. */
interface OurEnd {
  pool: string;
  address: string | null;
}

/**
 * Opens a socket to one of the host's addresses; rejects with an Error whose message is one sentence. `source`: our own
 * address, null if the system chose it.
 */
type Dial = (
  host: { name: string; addresses: string[] },
  from: OurEnd,
  stopped: AbortSignal,
) => Promise<{ socket: Socket; address: string; source: string | null; localName: string }>;

/** When and why the TLS handshake with a host failed. */
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

interface DeliveryJob {
  mail: Mail;
  /** The recipient's domain. */
  domain: string;
  from: OurEnd;
  destination: Destination;
  /** In order of preference. The first one is dialed, but an idle session at any of them is used before that. */
  targets: [Target, ...Target[]];
  transcript: Transcript;
  stopped: AbortSignal;
}

interface Report {
  result: SessionResult;
  /** The host that the mail was offered to; its first address if none answered. */
  peer: Peer;
  /** Our own address; null: the system chose it, or there was no connection. */
  source: string | null;
  tls: TlsUsed | null;
}

export type Offer = (job: DeliveryJob) => Promise<Report>;

interface NewConnection {
  opened: Opened;
  address: string;
  source: string | null;
}

const tlsFailureTtlMs = 24 * 60 * 60_000;

export function createOffer(parts: OfferParts): Offer {
  const { pool } = parts;
  const openConnection = createOpenConnection(parts);
  const peerOf = (host: string, address: string): Peer => ({ host, address, port: parts.port });

  async function offer(job: DeliveryJob): Promise<Report> {
    const { destination, targets, transcript, stopped } = job;
    const suits = targets.map((target) => suitOf(target, job));
    const acquired = await pool.acquire(destination, suits, stopped);
    if (!('session' in acquired)) return onNewConnection(job, acquired.permit);
    const { session } = acquired;
    const { demand } = targets.find(({ name }) => name === session.host)!;
    const protection = session.protection(demand, job.domain);
    transcript.add('note', reuseNote(session, protection));
    const { report, stale } = await transferMail(job, session, protection);
    if (!stale || stopped.aborted) return report;
    transcript.add('note', 'the host had closed this connection while it was idle; using a new one');
    const next = await pool.acquire(destination, [], stopped);
    // Without a condition no session suits, so this is a permit.
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
      const { opened, address, source } = await openConnection(job, target);
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
        source: null,
        tls: null,
      };
    }
  }

  return offer;
}

/** Opens a session, with TLS if possible. Rejects if no address answered. */
function createOpenConnection(parts: OfferParts) {
  async function connectWithTls(job: DeliveryJob, target: Target): Promise<NewConnection> {
    const { transcript, stopped } = job;
    const { policy } = target.demand;
    if (target.note) transcript.add('note', target.note);
    const known = policy === 'opportunistic' ? await failureOf(target.name) : null;
    if (known) {
      transcript.add('note', `no TLS with ${target.name}: it failed at ${iso(known.at)} (${known.reason})`);
    }
    const first = await open(parts, job, target, policy !== 'off' && !known);
    if ('session' in first.opened || first.opened.result.kind !== 'tls-failed' || stopped.aborted) {
      return first;
    }
    const { detail } = first.opened.result;
    if (!allowsClear(target.demand)) {
      return { ...first, opened: { ...first.opened, result: { kind: 'tls-required', detail } } };
    }
    transcript.add('note', 'once more without TLS');
    await first.opened.closed;
    const again = await open(parts, job, { ...target, addresses: [first.address] }, false);
    // If clear text fails too, TLS was not the cause.
    if ('session' in again.opened) await remember(target.name, detail);
    return again;
  }

  /** If the cache fails, that costs one vain handshake, never the mail. */
  const failureOf = (host: string) => parts.tlsFailures.get(host).catch(() => null);

  const remember = (host: string, reason: string) =>
    parts.tlsFailures.set(host, { at: parts.clock.now(), reason }, tlsFailureTtlMs).catch(() => {});

  return connectWithTls;
}

async function open(parts: OfferParts, job: DeliveryJob, target: Target, startTls: boolean) {
  const { name: host, addresses, demand } = target;
  const { transcript, stopped, domain, from } = job;
  transcript.add('note', `connecting to ${host} [${addresses.join(', ')}]:${parts.port}`);
  const { socket, address, source, localName } = await dial(
    parts.connect,
    { name: host, addresses },
    from,
    stopped,
  );
  const ours = source === null ? '' : ` from [${source}]`;
  if (addresses.length > 1 || source !== null) transcript.add('note', `connected to [${address}]${ours}`);
  const opened = await openSession({
    socket,
    host,
    address,
    domain,
    source,
    sourcePool: from.pool,
    name: localName,
    demand,
    startTls,
    timeouts: parts.timeouts,
    transcript,
    stopped,
  });
  return { opened, address, source };
}

/** A socket that connects after the stop is destroyed. */
async function dial(connect: Dial, ...args: Parameters<Dial>): ReturnType<Dial> {
  const [, , stopped] = args;
  const connecting = connect(...args);
  try {
    return await orAborted(connecting, stopped);
  } catch (error) {
    connecting.then(({ socket }) => socket.destroy()).catch(() => {});
    throw error;
  }
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
