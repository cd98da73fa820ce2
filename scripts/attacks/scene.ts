/**
 * What is attacked: a Postern as scripts/start runs it, with its ports for HTTP, returned mail and submission, on a
 * directory of its own; an exchanger that takes everything; and another organization, which only sends (bystander.ts).
 */
import { hash } from 'node:crypto';
import net from 'node:net';
import { makeSetUpLink } from '#accounts/people/people.ts';
import { type Browser, createBrowser, setUp } from '#lab/browser/browser.ts';
import { startAuthority, type TestAuthority } from '#lab/certificates/authority.ts';
import { startPostgres } from '#lab/database/postgres.ts';
import { type Dns, startDns } from '#lab/dns/dns.ts';
import { freePort } from '#lab/load/ports.ts';
import type { Stage } from '#lab/load/stage.ts';
import { startSink } from '#lab/mx/sink.ts';
import { launch } from '#lab/scenes/measured-postern.ts';
import { launchPostern, type Postern } from '#lab/scenes/postern.ts';
import { receiveAt } from '#lab/scenes/receiving.ts';
import { testConfig } from '#lab/scenes/world.ts';
import { addRoute } from '#mail/received/define-route.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { Config } from '#platform/settings/config.ts';
import { type Bystander, startBystander } from './bystander.ts';

export interface Scene extends Pick<Postern, 'url' | 'db' | 'key' | 'dataDir' | 'addTenant' | 'after'> {
  pid: number;
  config: Config;
  /** SMTP: for returned mail, and for mail of applications with TLS from the start. */
  ports: { inbound: number; submission: number; https: number | null };
  dns: Dns;
  /** Where certificates come from, at the place for them. */
  authority: TestAuthority | null;
  bystander: Bystander;
  /** A connection that ends with the attack at the latest. It never closes by itself (`allowHalfOpen`). */
  connect(port: number, from: string): net.Socket;
  endConnections(): void;
  /** Signed in as the operator, the same one each time. */
  operator(): Promise<Browser>;
  hasEnded(): boolean;
}

const host = '127.0.0.2';
const exchanger = { 'there.invalid': { MX: ['10 mx.invalid'] }, 'mx.invalid': { A: [host] } };

/** The server has SQLite and no certificates; PostgreSQL; certificates of the tests' authority; or domains that receive mail. */
export type Place = 'usual' | 'PostgreSQL' | 'certificates' | 'receiving';

/** The domains at which the organization and the bystander's receive, each with a route. */
export const receivingDomains = { own: 'attacked.invalid', others: 'calm.invalid' };

export async function startScene(stage: Stage, place: Place): Promise<Scene> {
  const sink = await stage.start(startSink([{ host }]), (it) => it.stop());
  const dns = await stage.start(startDns(exchanger), (it) => it.close());
  const { authority, https, settings: ofAuthority } = await startAuthorityAt(stage, dns, place);
  const ports = { inbound: await freePort('127.0.0.1'), submission: await freePort('127.0.0.1'), https };
  const databaseUrl =
    place === 'PostgreSQL'
      ? (await stage.start(startPostgres(stage.directory), (it) => it.stop())).url
      : null;
  const settings = {
    ...ofAuthority,
    POSTERN_INBOUND_PORT: String(ports.inbound),
    POSTERN_SUBMISSION_TLS_PORT: String(ports.submission),
  };
  let hasEnded = () => false;
  const postern = await launchPostern(
    stage,
    { dns, mtaPort: sink.port, settings, databaseUrl },
    async (all) => {
      const process = await launch(stage.directory, all);
      hasEnded = process.hasEnded;
      return process;
    },
  );
  const { url, db, dataDir } = postern;
  const config = testConfig({ dataDir, databaseUrl, dns, mtaPort: sink.port }, settings);
  const other = await postern.addTenant();
  if (place === 'receiving') {
    await startReceivingAt(db, receivingDomains.own, postern.key);
    await startReceivingAt(db, receivingDomains.others, other);
  }
  const bystander = await stage.start(startBystander({ url, key: other }), (it) => it.stop());
  const sockets = new Set<net.Socket>();
  let operator: Promise<Browser> | undefined;
  return {
    ...postern,
    config,
    ports,
    dns,
    authority,
    bystander,
    connect(port, from) {
      const socket = net.connect({ host: '127.0.0.1', port, localAddress: from, allowHalfOpen: true });
      // The other side may close it at any time: that is what many attacks look at.
      socket.on('error', () => {});
      socket.once('close', () => sockets.delete(socket));
      sockets.add(socket);
      return socket;
    },
    endConnections() {
      for (const socket of sockets) socket.destroy();
    },
    operator() {
      operator ??= signUp(url, db);
      return operator;
    },
    hasEnded: () => hasEnded(),
  };
}

/** All mail of the domain is kept. */
export async function startReceivingAt(db: Db, domain: string, key: string): Promise<void> {
  const orgId = await orgIdOf(db, key);
  await receiveAt(db, orgId, domain);
  await addRoute(db, orgId, { pattern: domain, action: 'store' }, Date.now());
}

async function startAuthorityAt(stage: Stage, dns: Dns, place: Place) {
  if (place !== 'certificates') return { authority: null, https: null, settings: {} };
  dns.set({ 'postern.invalid': { A: ['127.0.0.1'] } });
  const [http, https] = [await freePort('127.0.0.1'), await freePort('127.0.0.1')];
  const stops: (() => unknown)[] = [];
  const context = { passed: true, teardown: (stop: () => unknown) => stops.push(stop) };
  const options = { httpPort: http, tlsPort: https };
  const authority = await stage.start(
    startAuthority(context as unknown as Parameters<typeof startAuthority>[0], options),
    async () => {
      for (const stop of stops) await stop();
    },
  );
  const settings = {
    ...authority.settings,
    POSTERN_ACME_HTTP_PORT: String(http),
    POSTERN_ACME_HTTPS_PORT: String(https),
  };
  return { authority, https, settings };
}

async function signUp(url: string, db: Db): Promise<Browser> {
  const link = await makeSetUpLink(db, Date.now());
  const browser = createBrowser({ url: () => url });
  await setUp(browser, { setUpUrl: () => url + link!.path });
  return browser;
}

export async function orgIdOf(db: Db, key: string): Promise<string> {
  const row = await db('api_keys')
    .where({ hash: hash('sha256', key) })
    .first('org_id');
  return row.org_id;
}

/** Loopback addresses that stand for as many networks. */
export function addresses(network: number, count: number): string[] {
  return Array.from({ length: count }, (_, number) => `127.0.${network}.${number + 1}`);
}
