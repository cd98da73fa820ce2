/**
 * Gets and renews the certificates of our hosts, a few orders at a time. The node that takes a due host
 * (operate/certificates/rows/certificates-table.ts) asks the authority for it. While nothing is committed, the database is asked
 * again when the next host is due.
 *
 * A host that fails waits by itself, longer after each failure; the others go on. If the authority fails or limits us, no node
 * asks it for any host until the pause is over, which the database keeps; if it limits us because of a customer's host, the hosts
 * of that customer wait. A certificate that is there stays in use meanwhile.
 */
import { generateKeyPairSync } from 'node:crypto';
import type { Seal } from '#accounts/seal.ts';
import { type AcmeAccount, openAccount, pauseAccount } from '#operate/certificates/rows/acme-accounts.ts';
import {
  admitNewHost,
  beginWith,
  type CertificateRecord,
  claimDueHost,
  firstAttemptAt,
  forgetCertificates,
  listServerHosts,
  maxNewHosts,
  pauseHostsOf,
  postponeAttempt,
  recordFailure,
  recordIssued,
  setChallenge,
  type WantedHost,
  wantHosts,
} from '#operate/certificates/rows/certificates-table.ts';
import { type Clock, isRecent, untilPoll } from '#platform/base/clock.ts';
import type { Log } from '#platform/base/log.ts';
import type { Resolve } from '#platform/base/net/resolve.ts';
import { orAborted, pause } from '#platform/base/waits.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { AcmeFailure } from './acme-transport.ts';
import { Authority, type AuthorityParts, type ChallengeType } from './authority.ts';
import { type HostCertificates, refreshIntervalMs } from './host-certificates.ts';
import { lookAtHost } from './leads-here.ts';
import { afterLook, afterOutage, afterRefusal, renewalTimes } from './renewal-schedule.ts';

export interface KeeperParts extends Omit<AuthorityParts, 'accountKey' | 'signal'> {
  db: Db;
  seal: Seal;
  resolve: Resolve;
  certificates: HostCertificates;
  /** The hosts that need a certificate. */
  wantedHosts(): Promise<WantedHost[]>;
  /** The settings of the authority and of the web ports, as one text. */
  settings: string;
  /** The kinds that the authority can check here, in the order of preference. */
  challenges: ChallengeType[];
  /** Whether other nodes may have to answer a challenge. */
  hasOtherNodes: boolean;
  /** Another one than before: something was committed in between. */
  changeToken(): Promise<string>;
  clock: Clock;
  random(): number;
  log: Pick<Log, 'info' | 'warn'>;
  onError(what: string, error: unknown): void;
}

/** Between two looks at what is due. */
const keeperIntervalMs = 10_000;
/** Between two looks at which hosts are wanted: after a commit, and while nothing is committed. */
const wantedIntervalMs = 60_000;
const quietIntervalMs = 30 * 60_000;
/** Longer than an order takes; then another node may take the host. */
const claimMs = 10 * 60_000;
/** Several, so that hosts whose name servers do not answer delay no others. */
const maxAtOnce = 5;

interface DueHost {
  due: CertificateRecord;
  account: AcmeAccount;
}

export class CertificateKeeper {
  readonly #parts: KeeperParts;
  readonly #stopping = new AbortController();
  #authority: Authority | null = null;
  #wantedAt = Number.NEGATIVE_INFINITY;
  #token = '';
  /** Something was committed since the wanted hosts were looked at. */
  #isStale = false;
  /** When a host is due, while nothing is committed. */
  #dueAt = Number.NEGATIVE_INFINITY;
  #running: Promise<void> = Promise.resolve();
  #cancel = () => {};

  constructor(parts: KeeperParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#running = this.#run().catch((error) => {
      if (!this.#stopping.signal.aborted)
        this.#parts.onError('the certificates could not be looked after; trying again', error);
    });
    void this.#running.then(() => {
      if (!this.#stopping.signal.aborted)
        this.#cancel = this.#parts.clock.after(untilPoll(this.#parts.clock.now(), keeperIntervalMs), () =>
          this.start(),
        );
    });
  }

  /** An order under way is given up; its host is due again in ten minutes. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#cancel();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, changeToken } = this.#parts;
    const now = clock.now();
    const token = await changeToken();
    const hasChanged = token !== this.#token;
    this.#token = token;
    this.#isStale ||= hasChanged;
    await this.#wantHosts(now);
    if (!hasChanged && now < this.#dueAt) return;
    this.#dueAt = now;
    const first = await this.#claim();
    if (first === null) return;
    const others = Array.from({ length: maxAtOnce - 1 }, () => this.#work(null));
    const ended = await Promise.allSettled([this.#work(first), ...others]);
    for (const one of ended) if (one.status === 'rejected') throw one.reason;
  }

  async #wantHosts(now: number): Promise<void> {
    const { db, wantedHosts } = this.#parts;
    if (isRecent(this.#wantedAt, now, this.#isStale ? wantedIntervalMs : quietIntervalMs)) return;
    this.#dueAt = now;
    const wanted = await wantedHosts();
    await wantHosts(db, wanted, now);
    if (this.#wantedAt === Number.NEGATIVE_INFINITY) await this.#begin(wanted, now);
    await forgetCertificates(db, now);
    this.#wantedAt = now;
    this.#isStale = false;
  }

  async #begin(wanted: WantedHost[], now: number): Promise<void> {
    const { db, settings, hasOtherNodes } = this.#parts;
    const own = wanted.filter(({ purpose }) => purpose === 'server').map(({ host }) => host);
    await beginWith(db, { own, settings, isAlone: !hasOtherNodes, now });
  }

  /** Begins with `first`, and ends when nothing is due. */
  async #work(first: DueHost | null): Promise<void> {
    for (let next = first ?? (await this.#claim()); next !== null; next = await this.#claim())
      await this.#attend(next.due, next.account);
  }

  async #claim(): Promise<DueHost | null> {
    const { db, clock, directory, seal } = this.#parts;
    if (this.#stopping.signal.aborted) return null;
    const now = clock.now();
    const account = await openAccount(db, directory, () => seal.close(newAccountKey()));
    const isPaused = account.resumeAt > now;
    const due = isPaused ? null : await claimDueHost(db, { now, until: now + claimMs });
    if (due !== null) return { due, account };
    this.#dueAt = isPaused ? account.resumeAt : await firstAttemptAt(db, now);
    return null;
  }

  async #attend(due: CertificateRecord, account: AcmeAccount): Promise<void> {
    const { db, clock, random, resolve, certificates } = this.#parts;
    const { host, purpose, notBefore, notAfter } = due;
    // One that cannot be used is ordered like the first.
    const chain = certificates.hasCertificate(host) ? due.chain : null;
    const now = clock.now();
    if (chain !== null && notBefore !== null && notAfter !== null) {
      const window = await this.#authorityOf(account).renewalWindow(chain);
      const { renewAt, lookAt } = renewalTimes({ notBefore, notAfter }, window, { now, random });
      if (renewAt > now) return postponeAttempt(db, host, lookAt);
    }
    const ownHosts = await listServerHosts(db, now);
    const look = await orAborted(lookAtHost(due, { resolve, ownHosts }), this.#stopping.signal);
    if (look !== null) {
      const failures = due.failures + 1;
      const attemptAt = now + afterLook(failures, purpose === 'mta-sts', random);
      return recordFailure(db, due, { problem: { ...look, at: now }, failures, attemptAt });
    }
    const nextAt = await admitNewHost(db, due, now);
    if (nextAt !== null) {
      const text = `the authority was asked for ${maxNewHosts} new hosts of this organization within a day`;
      const problem = { type: 'new-hosts', text, at: now };
      return recordFailure(db, due, { problem, failures: due.failures, attemptAt: nextAt });
    }
    // DNS is right now, and the authority has not been asked since it was wrong.
    const failures = due.problem?.type.startsWith('dns-') ? 0 : due.failures;
    await this.#order({ ...due, chain, failures }, account);
  }

  async #order(due: CertificateRecord, account: AcmeAccount): Promise<void> {
    const { db, seal, clock, random, certificates, challenges, log } = this.#parts;
    const { host, failures, chain } = due;
    try {
      const issued = await this.#authorityOf(account).order({
        host,
        // After a failure the other way is tried: one of the two ports may not be reachable.
        challenges: failures % 2 === 0 ? challenges : challenges.toReversed(),
        replaces: failures === 0 ? chain : null,
        publish: (challenge) => this.#publish(host, challenge),
      });
      const now = clock.now();
      const { renewAt } = renewalTimes(issued, null, { now, random });
      const privateKey = seal.close(issued.privateKey);
      // Soon, because an authority may suggest another time (RFC 9773).
      const attemptAt = Math.min(renewAt, now + firstLookMs);
      await recordIssued(db, host, { ...issued, privateKey, attemptAt }, now);
      if (account.pauses > 0) await pauseAccount(db, account.directory, { resumeAt: 0, pauses: 0 });
      await certificates.refresh();
      log.info({ host }, `a certificate for ${host} was issued`);
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      if (!(error instanceof AcmeFailure)) throw error;
      await this.#failed(due, account, error);
    }
  }

  async #failed(due: CertificateRecord, account: AcmeAccount, failure: AcmeFailure): Promise<void> {
    const { db, clock, random, log, settings } = this.#parts;
    const { host, orgId } = due;
    const { kind, type, message } = failure;
    const now = clock.now();
    await setChallenge(db, host, null, now);
    const isOutage = kind === 'authority';
    // An outage says nothing about the host.
    const failures = isOutage ? due.failures : due.failures + 1;
    const retryAfterMs = failure.retryAfterMs ?? 0;
    const pauses = account.pauses + 1;
    const pauseMs = Math.max(afterOutage(pauses, random), isOutage ? retryAfterMs : 0);
    const waitMs = isOutage ? pauseMs : Math.max(afterRefusal(failures, random), retryAfterMs);
    const problem = { type, text: message, at: now, settings };
    await recordFailure(db, due, { problem, failures, attemptAt: now + waitMs });
    // A limit may be of this host's domain alone, so the others do not wait for its end.
    if (kind === 'limited' && orgId !== null)
      await pauseHostsOf(db, orgId, now + afterOutage(failures, random));
    else if (kind !== 'host') await pauseAccount(db, account.directory, { resumeAt: now + pauseMs, pauses });
    log.warn({ host, type, reason: message }, `no certificate for ${host} was issued`);
  }

  async #publish(host: string, challenge: { token: string; keyAuthorization: string }): Promise<void> {
    const { db, clock, certificates, hasOtherNodes } = this.#parts;
    await setChallenge(db, host, challenge, clock.now());
    await certificates.refresh();
    // Until every other node has read it.
    if (hasOtherNodes) await pause(clock, refreshIntervalMs + 1_000, this.#stopping.signal);
  }

  #authorityOf({ privateKey }: AcmeAccount): Authority {
    const { seal, directory, contact, ca, pollMs } = this.#parts;
    this.#authority ??= new Authority({
      directory,
      contact,
      accountKey: seal.open(privateKey),
      ca,
      signal: this.#stopping.signal,
      ...(pollMs !== undefined && { pollMs }),
    });
    return this.#authority;
  }
}

const firstLookMs = 3_600_000;

function newAccountKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
}
