/**
 * One attempt at a due delivery: finds the hosts and offers the message to one after the other, and at each host to its
 * addresses, until outcome.ts says that the result is final.
 *
 * Test mail goes to a simulated host instead. Orders the steps and decides nothing itself. Never throws: an error of our own
 * becomes a deferral that names it. Does not use the database; the message's bytes come with the delivery or from
 * `readMessage`.
 */

import { sessionOf, sessionOfSkipped } from '#mail/deliver/route/published-tls.ts';
import type { Host, Route, Routes } from '#mail/deliver/route/route.ts';
import { createSameSource } from '#mail/deliver/route/same-source.ts';
import type { Mail } from '#mail/deliver/smtp-out/mail-needs.ts';
import type { Offer, Target } from '#mail/deliver/smtp-out/offer.ts';
import { type SimulatedHost, simulatedHost } from '#mail/deliver/smtp-out/simulated-host.ts';
import { demandOf } from '#mail/deliver/smtp-out/tls-demand.ts';
import { createTranscript, type Transcript } from '#mail/deliver/smtp-out/transcript.ts';
import type { Clock } from '#platform/base/clock.ts';
import { orAborted } from '#platform/base/waits.ts';
import { envelopeAddress } from '#platform/values/address.ts';
import type { Attempt, Delivery, Peer, TlsSession, TlsUsed } from '#platform/values/glossary.ts';
import { isTestMail } from '#platform/values/test-route.ts';
import { type Classification, classify, type SessionResult } from './outcome.ts';

export interface DeliverParts {
  /** mail/deliver/route/route-cache.ts. */
  routes: Pick<Routes, 'find' | 'forget'>;
  /** mail/deliver/smtp-out/offer.ts. */
  offer: Offer;
  /** Answers for test mail instead of the recipient's hosts (mail/deliver/smtp-out/simulated-host.ts). */
  simulate: SimulatedHost['offer'];
  readMessage(messageId: string): Promise<Buffer>;
  /** The delivery's own envelope sender (VERP), which identifies the delivery in a bounce (mail/returned/return-path.ts). */
  returnPath(delivery: Delivery): string;
  /** The IP pool of an organization (mail/queue/cluster/pool-assignment.ts). */
  poolOf(orgId: string, stream?: string | null): string;
  /** Called if a host refused a mail in clear because it demands TLS. */
  onTlsWanted(host: string): void;
  /** Called once for each host that was tried or skipped, for the mail log. */
  onAttempted(delivery: Delivery, hostAttempt: HostAttempt): void;
  /** Whether an attempt lists its TLS sessions, for reports to the recipient's domain. */
  listsTlsSessions(delivery: Delivery): boolean;
  clock: Clock;
  port: number;
}

/** The result at one host. */
export interface HostAttempt {
  peer: Peer | null;
  /** Our own address; null: the system chose it, or there was no connection. */
  source: string | null;
  tls: TlsUsed | null;
  result: SessionResult;
  classification: Classification;
  ms: number;
  tlsSession: TlsSession | null;
}

/** At least one: without a host there is the reason why none was tried. */
type HostAttempts = [HostAttempt, ...HostAttempt[]];

const stoppedText = 'this server was stopped during the attempt';

/** RFC 5321 section 5.1 asks for at least two addresses; after this many the mail waits for its next attempt. */
const maxConversations = 5;

interface AttemptJob {
  delivery: Delivery;
  /** The IP pool, and the address of it that is preferred, if any. */
  from: { pool: string; address: string | null };
  /** How many connections the destination may have now. */
  connections: number;
  transcript: Transcript;
  stopped: AbortSignal;
}

type Reachable = Extract<Route, { hosts: Host[] }>;

export function createDeliver(parts: DeliverParts) {
  const { clock, routes } = parts;
  const sameSource = createSameSource();

  /** `connections`: how many the destination may have now, if that is fewer than its shape allows. */
  async function deliver(
    delivery: Delivery,
    stopped: AbortSignal,
    connections = Number.POSITIVE_INFINITY,
  ): Promise<Attempt> {
    const startedAt = clock.now();
    const transcript = createTranscript(() => performance.now());
    const from = { pool: parts.poolOf(delivery.orgId, delivery.stream), address: sameSource.of(delivery.id) };
    const job = { delivery, from, connections, transcript, stopped };
    let destination = delivery.domain;
    let tried: HostAttempts;
    try {
      const route = isTestMail(delivery) ? null : await orAborted(routes.find(delivery.domain), stopped);
      destination = route?.destination.name ?? delivery.domain;
      if (route === null) tried = [await trySimulated(parts, job)];
      else if ('result' in route) tried = [skipped(parts, job, null, route.result)];
      else tried = await tryHosts(parts, job, route);
    } catch (error) {
      const kind = stopped.aborted ? 'interrupted' : 'internal';
      const detail = stopped.aborted ? stoppedText : `internal error: ${(error as Error).message}`;
      transcript.add('note', detail);
      tried = [hostAttempt(null, { kind, detail, afterDot: false })];
    }
    const { source, classification } = decisive(tried);
    sameSource.note(delivery.id, source, classification.verdict.category === 'greylisting');
    return attemptOf(tried, { destination, startedAt, endedAt: clock.now(), transcript });
  }

  /** The attempt of a delivery whose process died meanwhile: the message may or may not have been accepted. */
  function interrupted(delivery: Delivery): Attempt {
    const detail = 'the server stopped during this attempt; whether the message was taken is not known';
    return withoutHost(delivery.domain, { kind: 'interrupted', detail, afterDot: true });
  }

  /** The record for a mail that reached its maximum age without an attempt; `reason` says what held it back. */
  function notAttempted(destination: string, reason: string): Attempt {
    return withoutHost(destination, { kind: 'withheld', detail: reason });
  }

  /** The record for a mail that a rule of the operator bounces. */
  function refused(destination: string, reason: string): Attempt {
    return withoutHost(destination, { kind: 'operator-bounce', detail: reason });
  }

  function withoutHost(destination: string, result: SessionResult & { detail: string }): Attempt {
    const now = clock.now();
    const transcript = createTranscript(() => now);
    transcript.add('note', result.detail);
    return attemptOf([hostAttempt(null, result)], { destination, startedAt: now, endedAt: now, transcript });
  }

  return { deliver, interrupted, notAttempted, refused };
}

interface AttemptFrame {
  destination: string;
  startedAt: number;
  endedAt: number;
  transcript: Transcript;
}

function attemptOf(
  tried: HostAttempts,
  { destination, startedAt, endedAt, transcript }: AttemptFrame,
): Attempt {
  const { result, classification, peer, tls } = decisive(tried);
  const isThrottled = tried.some((one) => one.classification.signal === 'throttled');
  return {
    destination,
    signal: isThrottled ? 'throttled' : classification.signal,
    startedAt,
    endedAt,
    verdict: classification.verdict,
    reply: 'reply' in result ? result.reply : null,
    mx: peer,
    tls,
    transcript: transcript.lines,
    tlsSessions: tried.flatMap(({ tlsSession }) => tlsSession ?? []),
  };
}

/** Says nothing about any real host. */
async function trySimulated(parts: DeliverParts, job: AttemptJob): Promise<HostAttempt> {
  const { delivery, transcript, stopped } = job;
  const started = performance.now();
  const tried = hostAttempt(simulatedHost, await parts.simulate(delivery, transcript, stopped));
  parts.onAttempted(delivery, { ...tried, ms: performance.now() - started });
  return { ...tried, classification: { ...tried.classification, signal: 'working' } };
}

async function tryHosts(parts: DeliverParts, job: AttemptJob, route: Reachable): Promise<HostAttempts> {
  const { delivery } = job;
  const message = delivery.message ?? (await parts.readMessage(delivery.messageId));
  const mail = {
    from: parts.returnPath(delivery),
    to: envelopeAddress(delivery.recipient, delivery.domain),
    message,
    requireTls: delivery.tls === 'requiretls',
  };
  const hosts = new HostList(parts, job, withMailTls(route, delivery), mail);
  const tried = await hosts.tryAll();
  const isUnreachable = tried.some(({ result }) => result.kind === 'unreachable');
  if (isUnreachable && !hosts.hasAnswered) parts.routes.forget(delivery.domain);
  return tried;
}

/** The route as far as the mail's own word on TLS (RFC 8689) changes it. */
function withMailTls(route: Reachable, { tls, domain }: Delivery): Reachable {
  if (tls !== 'requiretls' && tls !== 'not-required') return route;
  const hosts = route.hosts.map((host): Host => {
    if (tls === 'requiretls')
      return isProven(host, domain) ? host : { ...host, result: host.result ?? unproven(host) };
    // A host with addresses is withheld only for what the recipient's domain publishes on TLS.
    const { result: _, ...free } = host;
    return host.addresses.length > 0 ? free : host;
  });
  return { ...route, hosts };
}

/** RFC 8689 section 8.2: otherwise, whoever forges the MX records names a host of his own, with a valid certificate. */
function isProven({ name, tls }: Host, domain: string): boolean {
  if (name === domain || tls.policy === 'mta-sts') return true;
  return tls.policy === 'dane' ? tls.records.length > 0 : tls.isSigned === true;
}

const unproven = ({ name }: Host): SessionResult => ({
  kind: 'tls-required',
  detail: `the mail demands REQUIRETLS, but neither DNSSEC nor an MTA-STS policy proves that ${name} is a host of the domain`,
});

/** The hosts of a route in the course of one attempt. */
class HostList {
  readonly #parts: DeliverParts;
  readonly #job: AttemptJob;
  readonly #route: Reachable;
  readonly #mail: Mail;
  readonly #tried: HostAttempt[] = [];
  /** The addresses that a session was opened to. */
  readonly #usedAddresses = new Set<string>();

  constructor(parts: DeliverParts, job: AttemptJob, route: Reachable, mail: Mail) {
    this.#parts = parts;
    this.#job = job;
    this.#route = route;
    this.#mail = mail;
  }

  get hasAnswered(): boolean {
    return this.#usedAddresses.size > 0;
  }

  async tryAll(): Promise<HostAttempts> {
    for (const host of this.#route.hosts) {
      const isFinal = host.result
        ? this.#isFinal(this.#skipped(host, host.result))
        : await this.#tryHost(host);
      if (isFinal) break;
    }
    return this.#tried as HostAttempts;
  }

  #skipped(host: Host, result: SessionResult): HostAttempt {
    const tried = skipped(this.#parts, this.#job, this.#peerOf(host), result);
    return { ...tried, tlsSession: this.#lists ? sessionOfSkipped(host) : null };
  }

  /** With TLS-Required: No, the certificate is not checked as the domain's policy says. */
  get #lists(): boolean {
    const { delivery } = this.#job;
    return delivery.tls !== 'not-required' && this.#parts.listsTlsSessions(delivery);
  }

  /** True if the result is final: that of this host, or of a later one whose idle session was used. */
  async #tryHost(host: Host): Promise<boolean> {
    while (this.#usedAddresses.size < maxConversations) {
      const targets = this.#targetsFrom(host);
      if (!targets) return false;
      const tried = await this.#offerTo(targets);
      const isUnreachable = tried.result.kind === 'unreachable';
      if (!isUnreachable) this.#usedAddresses.add(tried.peer!.address);
      if (this.#isFinal(tried)) return true;
      if (isUnreachable) return false;
    }
    return true;
  }

  #isFinal(tried: HostAttempt): boolean {
    this.#tried.push(tried);
    return !tried.classification.tryNextHost || this.#job.stopped.aborted;
  }

  /** This host and the ones after it, each with its unused addresses; null if this host has none left. */
  #targetsFrom(host: Host): [Target, ...Target[]] | null {
    const { hosts, destination } = this.#route;
    const [target, ...others] = hosts
      .slice(hosts.indexOf(host))
      .filter(({ result }) => !result)
      .map(({ name, addresses, tls }) => ({
        name,
        addresses: addresses.filter((address) => !this.#usedAddresses.has(address)),
        demand: demandOf(tls, destination.shape.tls, this.#job.delivery.tls),
        note: tls.note,
      }));
    return target!.addresses.length > 0 ? [target!, ...others] : null;
  }

  async #offerTo(targets: [Target, ...Target[]]): Promise<HostAttempt> {
    const { delivery, transcript, stopped, from } = this.#job;
    const { name, shape } = this.#route.destination;
    const connections = Math.min(shape.connections, this.#job.connections);
    const started = performance.now();
    const { peer, source, tls, result, trial } = await this.#parts.offer({
      delivery,
      mail: this.#mail,
      domain: delivery.domain,
      from,
      destination: { name, shape: { ...shape, connections } },
      targets,
      transcript,
      stopped,
    });
    const ms = performance.now() - started;
    const host = this.#route.hosts.find((one) => one.name === peer.host)!;
    const tlsSession = trial && this.#lists ? sessionOf(host, trial, peer.address, source) : null;
    const tried = { peer, source, tls, result, classification: classify(result), ms, tlsSession };
    this.#parts.onAttempted(delivery, tried);
    const isRefusedInClear = result.kind === 'refused' && tls === null;
    if (isRefusedInClear && tried.classification.verdict.category === 'tls')
      this.#parts.onTlsWanted(peer.host);
    return tried;
  }

  #peerOf({ name, addresses }: Host): Peer | null {
    return addresses[0] ? { host: name, address: addresses[0], port: this.#parts.port } : null;
  }
}

/** A host, or the whole route, that is not tried: `result` says why. */
function skipped(
  parts: DeliverParts,
  job: AttemptJob,
  peer: Peer | null,
  result: SessionResult,
): HostAttempt {
  const tried = hostAttempt(peer, result);
  job.transcript.add('note', tried.classification.verdict.diagnostic);
  parts.onAttempted(job.delivery, tried);
  return tried;
}

function hostAttempt(peer: Peer | null, result: SessionResult): HostAttempt {
  return { peer, source: null, tls: null, result, classification: classify(result), ms: 0, tlsSession: null };
}

const decisive = ([first, ...others]: HostAttempts) => others.reduce(moreDecisive, first);

/**
 * Chooses the one of two hosts' results that decides the attempt: a final one; among deferrals one with a reply, else the later.
 * A refusal that the next host might not share (`bounced`, but try the next host) yields to any deferral, because in
 * doubt a delivery is deferred.
 */
function moreDecisive(earlier: HostAttempt, later: HostAttempt): HostAttempt {
  // Nothing was offered to that host.
  if (later.result.kind === 'put-off') return earlier;
  if (!later.classification.tryNextHost) return later;
  const isDeferral = ({ classification }: HostAttempt) => classification.verdict.outcome === 'deferred';
  if (isDeferral(earlier) !== isDeferral(later)) return isDeferral(earlier) ? earlier : later;
  return 'reply' in earlier.result && !('reply' in later.result) ? earlier : later;
}
