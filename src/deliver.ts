/**
 * A due delivery becomes an attempt with a verdict: find the hosts, offer the message to one after the other, and at
 * each to its addresses, until outcome.ts says that the word is final.
 *
 * Orders the steps and decides nothing itself. Never throws: trouble of our own is a deferral that says so. Reads
 * and writes no database; the message's bytes come with the delivery or from `readMessage`.
 */
import { orAborted } from './base/abort.ts';
import type { Clock } from './base/clock.ts';
import type { Attempt, Delivery, Peer, TlsUsed } from './glossary.ts';
import { envelopeAddress } from './mail/address.ts';
import { type Classification, classify, type SessionResult } from './outcome.ts';
import type { Host, Route, Routes } from './route/route.ts';
import type { SameSource } from './route/same-source.ts';
import type { createOffer, Target } from './smtp-out/offer.ts';
import { demandOf } from './smtp-out/tls-demand.ts';
import type { Mail } from './smtp-out/transaction.ts';
import { createTranscript, type Transcript } from './smtp-out/transcript.ts';

export interface DeliverParts {
  findRoute: Routes['find'];
  /** The next attempt is to look the domain up anew. */
  forgetRoute: Routes['forget'];
  offer: ReturnType<typeof createOffer>;
  readMessage(messageId: string): Promise<Buffer>;
  /** The envelope sender of a delivery (VERP), so that a bounce names it. */
  returnPath(deliveryId: string): string;
  /** The pool of our addresses that an organization's mail leaves from. */
  poolOf(orgId: string): string;
  sameSource: SameSource;
  /** Told of each conversation, for the mail log. */
  onAttempted(delivery: Delivery, offer: HostAttempt): void;
  clock: Clock;
  port: number;
}

/** What came of offering the message to one host. */
export interface HostAttempt {
  peer: Peer | null;
  /** Our own address; null: the system's choice, or there was no connection. */
  source: string | null;
  tls: TlsUsed | null;
  result: SessionResult;
  classification: Classification;
  ms: number;
}

const stoppedText = 'this server was stopped during the attempt';

/** RFC 5321 section 5.1 asks for two addresses at least; past this the mail waits for its next attempt. */
const maxConversations = 5;

interface AttemptJob {
  delivery: Delivery;
  /** Of our own addresses the pool, and the one that is wanted again. */
  from: { pool: string; address: string | null };
  /** Connections to the destination at once, as of now. */
  connections: number;
  transcript: Transcript;
  stopped: AbortSignal;
}

type Reachable = Extract<Route, { hosts: Host[] }>;

/** One attempt's round of the hosts. */
interface Round {
  route: Reachable;
  mail: Mail;
  job: AttemptJob;
  offers: HostAttempt[];
  /** Addresses that were talked to. */
  tried: Set<string>;
}

export function createDeliver(parts: DeliverParts) {
  const { clock } = parts;

  /** `connections`: how many the destination is given at once now, within its shape. */
  async function deliver(
    delivery: Delivery,
    stopped: AbortSignal,
    connections = Number.POSITIVE_INFINITY,
  ): Promise<Attempt> {
    const startedAt = clock.now();
    const transcript = createTranscript(() => performance.now());
    const from = { pool: parts.poolOf(delivery.orgId), address: parts.sameSource.of(delivery.id) };
    const job = { delivery, from, connections, transcript, stopped };
    let destination = delivery.domain;
    let offers: [HostAttempt, ...HostAttempt[]];
    try {
      const route = await orAborted(parts.findRoute(delivery.domain), stopped);
      destination = route.destination.name;
      offers = 'result' in route ? [skipped(job, null, route.result)] : await tryAll(route, job);
    } catch (error) {
      const kind = stopped.aborted ? 'interrupted' : 'internal';
      const detail = stopped.aborted ? stoppedText : `trouble of our own: ${(error as Error).message}`;
      job.transcript.add('note', detail);
      offers = [offerOf(null, { kind, detail, afterDot: false })];
    }
    const decisive = decisiveOf(offers);
    const isGreylisted = decisive.classification.outcome.category === 'greylisting';
    parts.sameSource.note(delivery.id, decisive.source, isGreylisted);
    return attemptOf(offers, { destination, startedAt, transcript });
  }

  async function tryAll(route: Reachable, job: AttemptJob): Promise<[HostAttempt, ...HostAttempt[]]> {
    const { delivery } = job;
    const message = delivery.message ?? (await parts.readMessage(delivery.messageId));
    const mail = {
      from: parts.returnPath(delivery.id),
      to: envelopeAddress(delivery.recipient, delivery.domain),
      message,
    };
    const round: Round = { route, mail, job, offers: [], tried: new Set() };
    for (const host of route.hosts) {
      const isFinal = host.result
        ? !heard(round, skipped(job, peerOf(host), host.result))
        : await tryHost(host, round);
      if (isFinal) break;
    }
    const isUnreachable = round.offers.some(({ result }) => result.kind === 'unreachable');
    if (isUnreachable && round.tried.size === 0) parts.forgetRoute(delivery.domain);
    return round.offers as [HostAttempt, ...HostAttempt[]];
  }

  /** True where its word, or that of a host whose session was at hand, is final. */
  async function tryHost(host: Host, round: Round): Promise<boolean> {
    while (round.tried.size < maxConversations) {
      const targets = targetsFrom(host, round);
      if (!targets) return false;
      const offer = await offerTo(targets, round);
      const isUnreachable = offer.result.kind === 'unreachable';
      if (!isUnreachable) round.tried.add(offer.peer!.address);
      if (!heard(round, offer)) return true;
      if (isUnreachable) return false;
    }
    return true;
  }

  /** Whether to go on. */
  function heard({ offers, job }: Round, offer: HostAttempt): boolean {
    offers.push(offer);
    return offer.classification.tryNextHost && !job.stopped.aborted;
  }

  /** This host with the addresses that were not tried yet, then the hosts after it; null where it has none left. */
  function targetsFrom(host: Host, { route, job, tried }: Round): [Target, ...Target[]] | null {
    const { hosts, destination } = route;
    const [target, ...others] = hosts
      .slice(hosts.indexOf(host))
      .filter(({ result }) => !result)
      .map(({ name, addresses, tls }) => ({
        name,
        addresses: addresses.filter((address) => !tried.has(address)),
        demand: demandOf(tls, destination.shape.tls, job.delivery.tls),
        note: tls.note,
      }));
    return target!.addresses.length > 0 ? [target!, ...others] : null;
  }

  async function offerTo(targets: [Target, ...Target[]], { route, mail, job }: Round): Promise<HostAttempt> {
    const { transcript, stopped, from } = job;
    const { domain } = job.delivery;
    const { name, shape } = route.destination;
    const connections = Math.min(shape.connections, job.connections);
    const destination = { name, shape: { ...shape, connections } };
    const started = performance.now();
    const report = await parts.offer({ mail, domain, from, destination, targets, transcript, stopped });
    const offer = offerOf(report.peer, report.result, report.tls);
    return told(job, { ...offer, source: report.source, ms: performance.now() - started });
  }

  const peerOf = ({ name, addresses }: Host): Peer | null =>
    addresses[0] ? { host: name, address: addresses[0], port: parts.port } : null;

  /** What stands in the way before any conversation. */
  function skipped(job: AttemptJob, peer: Peer | null, result: SessionResult): HostAttempt {
    const offer = offerOf(peer, result);
    job.transcript.add('note', offer.classification.outcome.diagnostic);
    return told(job, offer);
  }

  function told({ delivery }: AttemptJob, offer: HostAttempt): HostAttempt {
    parts.onAttempted(delivery, offer);
    return offer;
  }

  function attemptOf(
    offers: [HostAttempt, ...HostAttempt[]],
    {
      destination,
      startedAt,
      transcript,
    }: { destination: string; startedAt: number; transcript: Transcript },
  ): Attempt {
    const { result, classification, peer, tls } = decisiveOf(offers);
    const isThrottled = offers.some((offer) => offer.classification.signal === 'throttled');
    return {
      destination,
      signal: isThrottled ? 'throttled' : classification.signal,
      startedAt,
      endedAt: clock.now(),
      outcome: classification.outcome,
      reply: 'reply' in result ? result.reply : null,
      mx: peer,
      tls,
      transcript: transcript.lines,
    };
  }

  /** What a dead process was doing: nobody knows how far it got, so the message may have been taken. */
  function interrupted(delivery: Delivery): Attempt {
    const detail = 'the server stopped during this attempt; whether the message was taken is not known';
    const now = clock.now();
    const transcript = createTranscript(() => now);
    transcript.add('note', detail);
    const offer = offerOf(null, { kind: 'interrupted', detail, afterDot: true });
    return attemptOf([offer], { destination: delivery.domain, startedAt: now, transcript });
  }

  /** The mail has reached its maximum age while it was held back; `reason` says by what. */
  function notAttempted(destination: string, reason: string): Attempt {
    const now = clock.now();
    const transcript = createTranscript(() => now);
    transcript.add('note', reason);
    const offer = offerOf(null, { kind: 'withheld', detail: reason });
    return attemptOf([offer], { destination, startedAt: now, transcript });
  }

  return { deliver, interrupted, notAttempted };
}

function offerOf(peer: Peer | null, result: SessionResult, tls: TlsUsed | null = null): HostAttempt {
  return { peer, source: null, tls, result, classification: classify(result), ms: 0 };
}

const decisiveOf = ([first, ...others]: [HostAttempt, ...HostAttempt[]]) => others.reduce(betterOf, first);

/**
 * Of two hosts' answers the one that tells more: a final word; among deferrals the one with a reply; else the later.
 * A refusal that the next host might not share (`bounced`, but try on) yields to any deferral: doubt.
 */
function betterOf(earlier: HostAttempt, later: HostAttempt): HostAttempt {
  if (!later.classification.tryNextHost) return later;
  const isDeferral = (offer: HostAttempt) => offer.classification.outcome.outcome === 'deferred';
  if (isDeferral(earlier) !== isDeferral(later)) return isDeferral(earlier) ? earlier : later;
  return 'reply' in earlier.result && !('reply' in later.result) ? earlier : later;
}
