/**
 * A real Unbound as the validating resolver of a small world, for the scripts that want DNSSEC to be what it is: zones
 * signed here with keys of their own, which it trusts, and everything else below .invalid, unsigned, from a DNS of the
 * tests. A private instance: configuration, keys and zones are in the directory given, and it listens on loopback alone,
 * on a port of its own. The system's resolver and its configuration are left alone.
 *
 * Whoever starts it stops it, and removes the directory after that; a start that fails has left nothing running.
 *
 * BUGS: made for Debian and its relatives. The port is looked for first and taken a moment later; somebody else may be
 * faster.
 */
import { execFile, spawn } from 'node:child_process';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until } from '../../test/helpers/until.ts';
import { isInstalled } from './programs.ts';

export interface SignedZone {
  name: string;
  /** Lines of a zone file, the names relative to the zone; SOA and NS are there already. */
  records: string[];
  /** Done to the signed zone file, whose signatures are not made anew: what an attacker on the way would do. */
  forge?(signed: string): string;
  /** The key that Unbound trusts is another one than the zone is signed with. */
  wrongKey?: boolean;
}

export interface Unbound {
  /** `127.0.0.1:PORT`. */
  address: string;
  stop(): Promise<void>;
}

const install = 'DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends unbound ldnsutils';

/** What keeps Unbound from being started here, as a sentence that says what to do; null: nothing does. */
export function obstacle(): string | null {
  const missing = ['unbound', 'ldns-keygen', 'ldns-signzone'].filter((program) => !isInstalled(program));
  if (missing.length === 0) return null;
  return `${missing.join(' and ')} not found; on Debian: apt-get update && ${install}`;
}

const run = promisify(execFile);

/** `dnsPort`: of the DNS on 127.0.0.1 that knows all names below .invalid which are in no zone. */
export async function startUnbound(options: {
  directory: string;
  zones: SignedZone[];
  dnsPort: number;
}): Promise<Unbound> {
  const { zones, dnsPort } = options;
  const directory = join(options.directory, 'unbound');
  await mkdir(directory);
  const port = await freePort();
  const signed = await Promise.all(zones.map((zone) => sign(zone, directory)));
  const config = join(directory, 'unbound.conf');
  await writeFile(config, unboundConf({ directory, port, dnsPort, signed }));
  const child = spawn('unbound', ['-d', '-p', '-c', config], { detached: true });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said += chunk));
  const ended = once(child, 'exit');
  const stop = async () => {
    if (child.exitCode !== null) return;
    child.kill('SIGTERM');
    await ended;
  };
  const address = `127.0.0.1:${port}`;
  try {
    await until(async () => child.exitCode !== null || (await answers(address)), {
      what: () => `Unbound: ${said}`,
    });
    if (child.exitCode !== null) throw new Error(`Unbound does not start: ${said}`);
  } catch (error) {
    await stop();
    throw error;
  }
  return { address, stop };
}

async function answers(address: string): Promise<boolean> {
  const resolver = new Resolver({ timeout: 300, tries: 1 });
  resolver.setServers([address]);
  // A name that Unbound knows by itself (RFC 6761 section 6.3).
  return resolver.resolve4('localhost').then(
    () => true,
    () => false,
  );
}

interface Signed {
  name: string;
  zoneFile: string;
  /** A DS record, as Unbound reads it. */
  anchor: string;
}

async function sign({ name, records, forge, wrongKey }: SignedZone, directory: string): Promise<Signed> {
  const own = join(directory, name);
  await mkdir(own);
  const newKey = async () =>
    (await run('ldns-keygen', ['-a', 'ECDSAP256SHA256', '-k', name], { cwd: own })).stdout.trim();
  const key = await newKey();
  const trusted = wrongKey ? await newKey() : key;
  const lines = [
    `$ORIGIN ${name}.`,
    '$TTL 60',
    `@ SOA ns.${name}. hostmaster.${name}. 1 3600 600 86400 60`,
    `@ NS ns.${name}.`,
    'ns A 127.0.0.1',
    ...records,
  ];
  await writeFile(join(own, 'zone'), `${lines.join('\n')}\n`);
  const zoneFile = join(own, 'zone.signed');
  await run('ldns-signzone', ['-o', name, '-f', zoneFile, 'zone', key], { cwd: own });
  if (forge) await writeFile(zoneFile, forge(await readFile(zoneFile, 'utf8')));
  return { name, zoneFile, anchor: (await readFile(join(own, `${trusted}.ds`), 'utf8')).trim() };
}

/** It is the authority of the zones for itself alone, so what it answers of them it has validated. */
function unboundConf(world: { directory: string; port: number; dnsPort: number; signed: Signed[] }): string {
  const { directory, port, dnsPort, signed } = world;
  const anchors = signed.map(({ anchor }) => `  trust-anchor: "${anchor.replace(/\s+/g, ' ')}"\n`);
  const zones = signed.map(
    ({ name, zoneFile }) => `auth-zone:
  name: "${name}."
  zonefile: "${zoneFile}"
  for-downstream: no
  for-upstream: yes
  fallback-enabled: no
`,
  );
  return `server:
  directory: "${directory}"
  chroot: ""
  username: ""
  pidfile: ""
  use-syslog: no
  logfile: ""
  interface: 127.0.0.1@${port}
  access-control: 127.0.0.0/8 allow
  do-not-query-localhost: no
  do-ip6: no
  module-config: "validator iterator"
  local-zone: "invalid." nodefault
  log-servfail: yes
${anchors.join('')}
remote-control:
  control-enable: no
${zones.join('')}
stub-zone:
  name: "invalid."
  stub-addr: 127.0.0.1@${dnsPort}
`;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}
