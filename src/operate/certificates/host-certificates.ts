/**
 * This node's view of the certificates in the database (operate/certificates/rows/certificates-table.ts): which hosts have one,
 * and the answers to the authority's challenges. It reads what has changed every five seconds in which something was committed, so
 * that every node uses a certificate, and can answer a challenge, whichever node asked for it. Connections keep the certificate
 * that they began with.
 *
 * Questions are answered from memory, except that a host's certificate is read when a client first names the host. If the
 * database is away, what was read before stays in use. A certificate that cannot be used is a warning, and its host has none.
 */
import { createSecureContext, type SecureContext } from 'node:tls';
import { LRUCache } from 'lru-cache';
import type { Seal } from '#accounts/seal.ts';
import {
  type ChangedHost,
  readCertificate,
  readChangedHosts,
} from '#operate/certificates/rows/certificates-table.ts';
import { lruOptions } from '#platform/base/bounded-cache.ts';
import { type Clock, untilPoll } from '#platform/base/clock.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { Certificate, Pair } from './listener-certificate.ts';
import { challengeCertificate } from './self-signed.ts';

export interface HostCertificatesParts {
  db: Db;
  seal: Pick<Seal, 'open'>;
  /** The host whose certificate is `current`, once there is one; null: the operator's file is preferred. */
  mainHost: string | null;
  fallback: Certificate;
  /** Another one than before: something was committed in between. */
  changeToken(): Promise<string>;
  clock: Clock;
  onError(what: string, error: unknown): void;
}

export const refreshIntervalMs = 5_000;
/** Finds rows that were committed a little late, or by a node whose clock is behind. */
const overlapMs = 60_000;
/** A context takes about 50 KB. */
const maxContexts = 500;

export class HostCertificates implements Certificate {
  readonly #parts: HostCertificatesParts;
  readonly #hosts = new Map<string, ChangedHost>();
  readonly #contexts = new LRUCache<string, SecureContext>(lruOptions(maxContexts));
  readonly #loading = new Map<string, Promise<SecureContext | null>>();
  /** The key authorizations of open HTTP-01 and TLS-ALPN-01 challenges, by token. */
  readonly #answers = new Map<string, string>();
  readonly #listeners = new Set<(pair: Pair) => void>();
  /** Hosts whose certificate cannot be used, with its beginning. */
  readonly #unusable = new Map<string, number>();
  #main: Pair | null = null;
  #since = 0;
  #token = '';
  #refreshing: Promise<void> | null = null;
  #isFailing = false;
  #stop = () => {};

  constructor(parts: HostCertificatesParts) {
    this.#parts = parts;
    parts.fallback.onChange((pair) => {
      if (this.#main === null) this.#tell(pair);
    });
  }

  /** Rejects if the database cannot be read. */
  async start(): Promise<void> {
    await this.refresh();
    this.#later();
  }

  stop(): void {
    this.#stop();
    this.#parts.fallback.stop();
  }

  current(): Pair {
    return this.#main ?? this.#parts.fallback.current();
  }

  onChange(listener: (pair: Pair) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** One of our hosts, with or without a certificate. */
  isOurs(host: string): boolean {
    return this.#hosts.has(host);
  }

  hasCertificate(host: string): boolean {
    return (this.#hosts.get(host)?.notBefore ?? null) !== null;
  }

  /** A host of the operator, with a certificate. */
  isCertifiedServer(host: string): boolean {
    return this.hasCertificate(host) && this.#hosts.get(host)!.purpose === 'server';
  }

  /** RFC 8555 section 8.3. */
  answerOf(token: string): string | null {
    return this.#answers.get(token) ?? null;
  }

  /** RFC 8737; null: no such challenge of this host is open. */
  challengeContext(host: string): SecureContext | null {
    const keyAuthorization = this.#hosts.get(host)?.keyAuthorization;
    if (!keyAuthorization) return null;
    return createSecureContext(challengeCertificate(host, keyAuthorization, this.#parts.clock.now()));
  }

  async contextOf(host: string): Promise<SecureContext | null> {
    const name = host.toLowerCase();
    const row = this.#hosts.get(name);
    if (!row || row.notBefore === null) return null;
    const known = this.#contexts.get(name) ?? this.#loading.get(name);
    if (known) return known;
    const loading = this.#load(row)
      .catch((error) => {
        this.#parts.onError(`the certificate of ${name} cannot be read`, error);
        return null;
      })
      .finally(() => this.#loading.delete(name));
    this.#loading.set(name, loading);
    return loading;
  }

  /** Reads what has changed; a call while another one runs waits for it, and then reads again. */
  async refresh(): Promise<void> {
    await this.#refreshing?.catch(() => {});
    this.#refreshing ??= this.#read().finally(() => {
      this.#refreshing = null;
    });
    await this.#refreshing;
  }

  async #read(): Promise<void> {
    const now = this.#parts.clock.now();
    for (const row of await readChangedHosts(this.#parts.db, this.#since)) {
      const before = this.#hosts.get(row.host);
      if (row.notBefore !== null && row.notBefore === this.#unusable.get(row.host)) row.notBefore = null;
      if (row.notBefore !== null && row.notBefore !== before?.notBefore) await this.#renewed(row);
      if (before?.token) this.#answers.delete(before.token);
      if (row.token && row.keyAuthorization) this.#answers.set(row.token, row.keyAuthorization);
      this.#hosts.set(row.host, row);
    }
    this.#since = now - overlapMs;
  }

  async #renewed(row: ChangedHost): Promise<void> {
    if (row.host === this.#parts.mainHost || this.#contexts.has(row.host)) await this.#load(row);
  }

  /** Rejects if the database cannot be read. */
  async #load(row: ChangedHost): Promise<SecureContext | null> {
    const { host } = row;
    const found = await readCertificate(this.#parts.db, host);
    if (found === null) {
      // Deleted, after it expired.
      this.#hosts.delete(host);
      return null;
    }
    try {
      const pair = { cert: found.chain, key: this.#parts.seal.open(found.privateKey) };
      const context = createSecureContext(pair);
      this.#contexts.set(host, context);
      if (host !== this.#parts.mainHost) return context;
      this.#main = pair;
      this.#tell(pair);
      return context;
    } catch (error) {
      this.#refuse(row, error);
      return null;
    }
  }

  #refuse(row: ChangedHost, error: unknown): void {
    const { host, notBefore } = row;
    if (notBefore !== null) this.#unusable.set(host, notBefore);
    row.notBefore = null;
    this.#parts.onError(
      `the certificate of ${host} in the database cannot be used; \`postern certificate retry ${host}\` gets another`,
      error,
    );
  }

  #tell(pair: Pair): void {
    for (const listener of this.#listeners) listener(pair);
  }

  #later(): void {
    const { clock, onError } = this.#parts;
    this.#stop = clock.after(untilPoll(clock.now(), refreshIntervalMs), () => {
      this.#refreshIfChanged().then(
        () => {
          this.#isFailing = false;
        },
        (error) => {
          if (!this.#isFailing)
            onError('the certificates cannot be read; those read before stay in use', error);
          this.#isFailing = true;
        },
      );
      this.#later();
    });
  }

  async #refreshIfChanged(): Promise<void> {
    const token = await this.#parts.changeToken();
    if (token === this.#token) return;
    await this.refresh();
    this.#token = token;
  }
}
