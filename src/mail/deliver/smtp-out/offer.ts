/**
 * Offers one mail to one host, over an idle session if a suitable one exists, else over a new connection.
 *
 * The TLS ladder (RFC 7435): if TLS is only preferred and fails, it connects once more with outdated TLS allowed if the
 * handshake was the cause, and then once without TLS. What worked is remembered for that host. If TLS is demanded, it does
 * neither. If an idle session turns out to be closed, the mail goes over a new connection and loses nothing.
 *
 * Decides nothing about the mail; reports which host it was offered to and the result.
 */
import type { Socket } from 'node:net';
import type { SessionResult } from '#mail/deliver/outcome.ts';
import type { Wanted } from '#mail/deliver/route/source-addresses.ts';
import { type Clock, iso } from '#platform/base/clock.ts';
import type { PersistentCache } from '#platform/base/persistent-cache.ts';
import { orAborted } from '#platform/base/waits.ts';
import type { Destination } from '#platform/values/destination-shape.ts';
import type { Delivery, Peer, TlsTrial, TlsUsed } from '#platform/values/glossary.ts';
import { NoSource } from '#platform/values/ip-pool.ts';
import type { ConnectionCache, Permit } from './connection-cache.ts';
import type { SessionTimeouts } from './deadline.ts';
import type { TlsOffer } from './handshake.ts';
import type { Mail } from './mail-needs.ts';
import { type OpenedSession, openSession, type SmtpSession } from './session.ts';
import { allowsClear, type Demand, type Protection } from './tls-demand.ts';
import type { TlsFailure } from './tls-failure.ts';
import type { Transcript } from './transcript.ts';

export interface Target {
  name: string;
  addresses: string[];
  demand: Demand;
  /** A remark on the demand for the transcript, if there is one. */
  note?: string;
}

/**
 * Opens a socket to one of the host's addresses; rejects with an Error whose message is one sentence. `source`: our own
 * address, null if the system chose it.
 */
type Dial = (
  host: { name: string; addresses: string[] },
  from: Wanted,
  stopped: AbortSignal,
) => Promise<{ socket: Socket; address: string; source: string | null; localName: string }>;

export interface OfferParts {
  /** mail/deliver/route/connect.ts. */
  connect: Dial;
  connections: ConnectionCache;
  tlsFailures: PersistentCache<TlsFailure>;
  clock: Clock;
  port: number;
  timeouts: SessionTimeouts;
}

export interface DeliveryJob {
  delivery: Delivery;
  mail: Mail;
  /** The recipient's domain. */
  domain: string;
  from: Wanted;
  destination: Destination;
  /** In order of preference. The first one is dialed, but an idle session at any of them is used before that. */
  targets: [Target, ...Target[]];
  transcript: Transcript;
  stopped: AbortSignal;
}

export interface Report {
  result: SessionResult;
  /** The host that the mail was offered to; its first address if none answered. */
  peer: Peer;
  /** Our own address; null: the system chose it, or there was no connection. */
  source: string | null;
  tls: TlsUsed | null;
  /** How TLS went over a new connection, at the first try; null: an idle session was used, or TLS was not tried. */
  trial: TlsTrial | null;
}

export type Offer = (job: DeliveryJob) => Promise<Report>;

interface NewConnection {
  opened: OpenedSession;
  address: string;
  source: string | null;
}

type FirstTrial = { trial: TlsTrial | null };

const tlsFailureTtlMs = 24 * 60 * 60_000;
/** After a failure that may be an overload or a lost connection: the host may well give TLS the next time. */
const passingFailureTtlMs = 60 * 60_000;

export function createOffer(parts: OfferParts): Offer {
  const { connections } = parts;
  const openConnection = createOpenConnection(parts);
  const peerOf = (host: string, address: string): Peer => ({ host, address, port: parts.port });

  async function offer(job: DeliveryJob): Promise<Report> {
    const { destination, targets, transcript, stopped } = job;
    const suits = targets.map((target) => suitOf(target, job));
    const acquired = await connections.acquire(destination, suits, stopped);
    if (!('session' in acquired)) return onNewConnection(job, acquired.permit);
    const { session } = acquired;
    const { demand } = targets.find(({ name }) => name === session.host)!;
    const protection = session.protection(demand, job.domain);
    transcript.add('note', reuseNote(session, protection));
    const { report, stale } = await transferMail(job, session, protection);
    if (!stale || stopped.aborted) return report;
    transcript.add('note', 'the host had closed this connection while it was idle; using a new one');
    const next = await connections.acquire(destination, [], stopped);
    // Without a condition no session suits, so this is a permit.
    return onNewConnection(job, (next as { permit: Permit }).permit);
  }

  async function transferMail(job: DeliveryJob, session: SmtpSession, { tls }: Protection) {
    const { result, stale } = await session.send(job.mail, job.transcript, job.stopped);
    connections.giveBack(job.destination, session);
    const { host, address, source } = session;
    return { report: { result, peer: peerOf(host, address), source, tls, trial: null }, stale };
  }

  async function onNewConnection(job: DeliveryJob, permit: Permit): Promise<Report> {
    const [target] = job.targets;
    try {
      const { opened, address, source, trial } = await openConnection(job, target);
      if ('session' in opened) {
        opened.session.closed.then(permit);
        const { report } = await transferMail(job, opened.session, opened.protection);
        return { ...report, trial };
      }
      opened.closed.then(permit);
      return { result: opened.result, peer: peerOf(target.name, address), source, tls: opened.tls, trial };
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
        trial: null,
      };
    }
  }

  return offer;
}

/** Opens a session, with TLS if possible. Rejects if no address answered. */
function createOpenConnection(parts: OfferParts) {
  async function connectWithTls(job: DeliveryJob, target: Target): Promise<NewConnection & FirstTrial> {
    if (target.note) job.transcript.add('note', target.note);
    const tls = await firstOffer(target, job.transcript);
    const first = await open(parts, job, target, tls);
    return { ...(await descend(job, target, first, tls)), trial: first.opened.trial };
  }

  async function descend(
    job: DeliveryJob,
    target: Target,
    first: NewConnection,
    tls: TlsOffer | null,
  ): Promise<NewConnection> {
    const { stopped } = job;
    const failed = failureOf(first);
    if (!failed || stopped.aborted) return first;
    if (!allowsClear(target.demand)) {
      const { detail, closed } = failed;
      const { trial } = first.opened;
      return { ...first, opened: { result: { kind: 'tls-required', detail }, tls: null, closed, trial } };
    }
    await failed.closed;
    const again = { ...target, addresses: [first.address] };
    const isOld = tls === 'modern' && failed.mayBeOutdated;
    return isOld ? withOutdatedTls(job, again, failed) : inClear(job, again, failed);
  }

  async function withOutdatedTls(job: DeliveryJob, target: Target, failed: TlsFailed) {
    job.transcript.add('note', 'once more, with outdated TLS allowed');
    const second = await open(parts, job, target, 'legacy');
    if ('session' in second.opened && second.opened.protection.tls) await remember(target.name, failed, true);
    const failedAgain = failureOf(second);
    if (!failedAgain || job.stopped.aborted) return second;
    await failedAgain.closed;
    return inClear(job, target, failed);
  }

  async function inClear(job: DeliveryJob, target: Target, failed: TlsFailed) {
    job.transcript.add('note', 'once more without TLS');
    const last = await open(parts, job, target, null);
    // If clear text fails too, TLS was not the cause.
    if ('session' in last.opened) await remember(target.name, failed, false);
    return last;
  }

  async function firstOffer({ name, demand }: Target, transcript: Transcript): Promise<TlsOffer | null> {
    if (demand.policy === 'off') return null;
    // If the cache fails, that costs one vain handshake, never the mail.
    const known =
      demand.policy === 'opportunistic' ? await parts.tlsFailures.get(name).catch(() => null) : null;
    if (!known) return 'modern';
    const what = known.legacy ? 'outdated TLS allowed' : 'no TLS';
    transcript.add('note', `${what} with ${name}: it failed at ${iso(known.at)} (${known.reason})`);
    return known.legacy ? 'legacy' : null;
  }

  function remember(host: string, { detail, isTransient }: TlsFailed, legacy: boolean): Promise<void> {
    const failure: TlsFailure = { at: parts.clock.now(), reason: detail, ...(legacy && { legacy }) };
    const ttl = isTransient ? passingFailureTtlMs : tlsFailureTtlMs;
    return parts.tlsFailures.set(host, failure, ttl).catch(() => {});
  }

  return connectWithTls;
}

type TlsFailed = Extract<SessionResult, { kind: 'tls-failed' }>;

function failureOf({ opened }: NewConnection): (TlsFailed & { closed: Promise<void> }) | null {
  if (!('result' in opened) || opened.result.kind !== 'tls-failed') return null;
  return { ...opened.result, closed: opened.closed };
}

async function open(
  parts: OfferParts,
  job: DeliveryJob,
  target: Target,
  tls: TlsOffer | null,
): Promise<NewConnection> {
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
    tls,
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
  return (session: SmtpSession) =>
    session.host === name &&
    addresses.includes(session.address) &&
    session.sourcePool === from.pool &&
    (from.address === null || session.source === from.address) &&
    session.protection(demand, domain).unmet === null &&
    (session.source === null || (from.allowance?.take(session.source) ?? true));
}

function reuseNote({ host, address, mails }: SmtpSession, { note }: Protection): string {
  const before = mails === 1 ? 'one mail' : `${mails} mails`;
  return `over a connection to ${host} [${address}] that has carried ${before}; ${note}`;
}
