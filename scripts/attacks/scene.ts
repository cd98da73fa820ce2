/**
 * What is attacked: a Postern as scripts/start runs it, with its ports for HTTP, returned mail and submission, on a
 * directory of its own; an exchanger that takes everything; and another organization, which only sends (bystander.ts).
 */
import { hash } from 'node:crypto';
import net from 'node:net';
import { makeSetUpLink } from '#accounts/people/people.ts';
import { type Browser, createBrowser, setUp } from '#lab/browser/browser.ts';
import { startDns } from '#lab/dns/dns.ts';
import { freePort } from '#lab/load/ports.ts';
import type { Stage } from '#lab/load/stage.ts';
import { startSink } from '#lab/mx/sink.ts';
import { launch } from '#lab/scenes/measured-postern.ts';
import { launchPostern, type Postern } from '#lab/scenes/postern.ts';
import { testConfig } from '#lab/scenes/world.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { Config } from '#platform/settings/config.ts';
import { type Bystander, startBystander } from './bystander.ts';

export interface Scene extends Pick<Postern, 'url' | 'db' | 'key' | 'dataDir' | 'addTenant' | 'after'> {
  pid: number;
  config: Config;
  /** SMTP: for returned mail, and for mail of applications with TLS from the start. */
  ports: { inbound: number; submission: number };
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

export async function startScene(stage: Stage): Promise<Scene> {
  const sink = await stage.start(startSink([{ host }]), (it) => it.stop());
  const dns = await stage.start(startDns(exchanger), (it) => it.close());
  const ports = { inbound: await freePort('127.0.0.1'), submission: await freePort('127.0.0.1') };
  const settings = {
    POSTERN_INBOUND_PORT: String(ports.inbound),
    POSTERN_SUBMISSION_TLS_PORT: String(ports.submission),
  };
  let hasEnded = () => false;
  const postern = await launchPostern(stage, { dns, mtaPort: sink.port, settings }, async (all) => {
    const process = await launch(stage.directory, all);
    hasEnded = process.hasEnded;
    return process;
  });
  const { url, db, dataDir } = postern;
  const config = testConfig({ dataDir, databaseUrl: null, dns, mtaPort: sink.port }, settings);
  const other = await postern.addTenant();
  const bystander = await stage.start(startBystander({ url, key: other }), (it) => it.stop());
  const sockets = new Set<net.Socket>();
  let operator: Promise<Browser> | undefined;
  return {
    ...postern,
    config,
    ports,
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
