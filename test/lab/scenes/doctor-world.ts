/**
 * A machine that can send, as `postern doctor` sees it: everything is as it should be, on loopback. Each test breaks
 * one thing.
 *
 *   const world = await startDoctorWorld(t);
 *   world.dns.set({ 'mx1.invalid': null });
 *   const changed = await world.changed();      // the findings that are not what they were
 */
import dgram from 'node:dgram';
import { once } from 'node:events';
import { chmod, copyFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { ExecutionContext } from 'ava';
import { listSenderDomains, setDomainTracking } from '#accounts/rows/domains-table.ts';
import { createNotify } from '#mail/queue/rows/notify.ts';
import { wellKnownBlocklists } from '#operate/doctor/checks/blocklists.ts';
import { type Examination, examine } from '#operate/doctor/examine.ts';
import type { Finding } from '#operate/doctor/finding.ts';
import type { Surroundings } from '#operate/doctor/surroundings.ts';
import { noteBackup } from '#platform/database/admin/last-backup.ts';
import { lockDataDir } from '#platform/database/engine/data-dir-lock.ts';
import { type Db, openDatabase } from '#platform/database/engine/open.ts';
import { isServed } from '#platform/database/tables/server-running.ts';
import { type Config, loadConfig } from '#platform/settings/config.ts';
import { createMigrated, type DatabaseKind } from '../database/databases.ts';
import { startDns, type Zone } from '../dns/dns.ts';
import { temporaryDirectory } from '../evidence.ts';
import { startListener } from '../mx/listener.ts';
import { startMxs } from '../mx/mx.ts';
import { until } from '../until.ts';
import { createTenant, testSettings } from './world.ts';

/** The certificates of test/fixtures/tls are for this name. */
export const hostname = 'mx1.invalid';
export const dkimDomain = 'sender.invalid';

const listed = { A: ['127.0.0.2'] };

const zone: Zone = {
  'big.invalid': { MX: ['10 in.big.invalid'] },
  'in.big.invalid': { A: ['127.0.0.2'] },
  'large.invalid': { MX: ['10 in.large.invalid'] },
  'in.large.invalid': { A: ['127.0.0.3'] },
  'signed.invalid': { A: ['192.0.2.1'], secure: true },
  [hostname]: { A: ['127.0.0.1'] },
  '1.0.0.127.in-addr.arpa': { PTR: [hostname] },
  'bounces.invalid': { MX: ['10 back.bounces.invalid'], TXT: ['v=spf1 ip4:127.0.0.1 -all'] },
  'back.bounces.invalid': { A: ['127.0.0.1'] },
  'bounces.sender.invalid': { CNAME: ['bounces.invalid'] },
  '_dmarc.sender.invalid': { TXT: ['v=DMARC1; p=reject; rua=mailto:dmarc@bounces.invalid'] },
  'sender.invalid._report._dmarc.bounces.invalid': { TXT: ['v=DMARC1'] },
  'links.sender.invalid': { CNAME: [hostname] },
  ...Object.fromEntries(wellKnownBlocklists.map((list) => [`${list.testEntry}.${list.zone}`, listed])),
};

export async function startDoctorWorld(
  t: ExecutionContext,
  { database: kind = 'sqlite', settings = {} }: { database?: DatabaseKind; settings?: object } = {},
) {
  const dataDir = await temporaryDirectory(t);
  const database = await createMigrated(kind, dataDir);
  t.teardown(() => database.drop());
  const dns = await startDns(zone);
  t.teardown(() => dns.close());
  const peers = await startMxs(['127.0.0.2', '127.0.0.3'], {
    script: { ehlo: () => '250 at your service, [127.0.0.1]' },
  });
  t.teardown(() => Promise.all(peers.map((peer) => peer.close())));
  const time = await startTimeServer(t);
  const returned = await startListener(t, { hostname });
  const certificate = join(dataDir, 'cert.pem');
  await copyFile(new URL('../../fixtures/tls/good.pem', import.meta.url), certificate);

  const given = testSettings(
    { dataDir, databaseUrl: database.url, dns, mtaPort: peers[0]!.port },
    {
      POSTERN_HOSTNAME: hostname,
      POSTERN_RETURN_PATH_DOMAIN: 'bounces.invalid',
      POSTERN_INBOUND_PORT: String(returned.port),
      POSTERN_SUBMISSION_PORT: '587',
      POSTERN_TLS_CERT: certificate,
      POSTERN_BASE_URL: 'https://mail.invalid',
      ...settings,
    },
  );
  const config = loadConfig(given);
  const db = await openDatabase(config);
  t.teardown(() => db.destroy());
  await createTenant(db, config, dns);
  const [domain] = await listSenderDomains(db, dkimDomain, 1);
  await setDomainTracking(db, domain!.id, { clicks: true, host: 'links.sender.invalid' });
  await chmod(join(dataDir, 'secret'), 0o600);
  // Its age in words stays the same meanwhile.
  noteBackup(dataDir, { at: Date.now() - 84.5 * 3_600_000, file: join(dataDir, 'last.sqlite') });
  const stopServer = await seemToRun(t, config, db);

  const surroundings: Partial<Surroundings> = {
    probes: ['big.invalid', 'large.invalid'],
    signedName: 'signed.invalid',
    timeServers: [`127.0.0.1:${time.port}`],
    returnPort: returned.port,
    // For a busy machine; a test that waits for one of these has its own.
    timeouts: { dns: 20_000, connect: 20_000, greeting: 20_000, time: 20_000, database: 20_000, all: 40_000 },
    ownAddresses: () => ['127.0.0.1'],
    freeBytes: async () => 50 * 1024 ** 3,
    syncTimes: async () => [1, 2, 1],
    openFiles: async () => 65536,
  };
  const examineNow = async (changes: DoctorChanges = {}) => {
    const { surroundings: others, config: otherConfig, ...rest } = changes;
    return examine({
      domain: null,
      now: Date.now,
      openDb: async () => db,
      ...rest,
      config: { ...config, ...otherConfig },
      surroundings: { ...surroundings, ...others },
    });
  };
  const healthy = await examineNow();
  return {
    dataDir,
    dns,
    peers,
    time,
    returned,
    certificate,
    config,
    db,
    domain: domain!,
    surroundings,
    healthy,
    examineNow,
    stopServer,
    /** For a process by itself. */
    settings: given as Record<string, string>,
    changed: async (changes?: DoctorChanges) => differing(healthy, await examineNow(changes)),
  };
}

/** What tells the doctor that a server is running; returns what ends it. */
async function seemToRun(t: ExecutionContext, { dataDir, databaseUrl }: Config, db: Db) {
  let unlock: (() => Promise<void>) | null = await lockDataDir(dataDir);
  const stop = async () => {
    await unlock?.();
    unlock = null;
  };
  t.teardown(stop);
  const notify = createNotify({ databaseUrl, node: 'a', sends: true, onError() {} });
  t.teardown(notify.close);
  notify.listen({ backlogs() {}, events() {}, anything() {} });
  await until(() => isServed(db, dataDir), { what: 'the server to be seen' });
  return stop;
}

interface DoctorChanges extends Partial<Omit<Examination, 'config' | 'surroundings'>> {
  config?: Partial<Config>;
  surroundings?: Partial<Surroundings>;
}

export type DoctorWorld = Awaited<ReturnType<typeof startDoctorWorld>>;

/** What is new or not what it was; what is gone, as it was. */
function differing(before: Finding[], after: Finding[]): Finding[] {
  const isIn = (list: Finding[]) => (one: Finding) => list.some((other) => isDeepStrictEqual(one, other));
  const nameOf = ({ check, subject }: Finding) => `${check} of ${subject}`;
  const changed = after.filter((one) => !isIn(before)(one));
  const gone = before.filter((one) => !after.some((other) => nameOf(one) === nameOf(other)));
  return [...changed, ...gone];
}

/** SNTP (RFC 4330), as far ahead as it is told. */
async function startTimeServer(t: ExecutionContext) {
  const socket = dgram.createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const server = { port: (socket.address() as AddressInfo).port, aheadMs: 0, stratum: 2 };
  socket.on('message', (question, from) => {
    const answer = Buffer.alloc(48);
    answer[0] = 0x24;
    answer[1] = server.stratum;
    question.copy(answer, 24, 40, 48);
    const seconds = (Date.now() + server.aheadMs) / 1000 + 2_208_988_800;
    for (const at of [32, 40]) {
      answer.writeUInt32BE(Math.floor(seconds), at);
      answer.writeUInt32BE(Math.floor((seconds % 1) * 2 ** 32), at + 4);
    }
    socket.send(answer, from.port, from.address, () => {});
  });
  t.teardown(() => socket.close());
  return server;
}
