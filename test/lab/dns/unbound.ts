/**
 * A real Unbound as a validating resolver, for scripts that need real DNSSEC: zones that are signed here with their own keys,
 * which it trusts; everything else below .invalid, unsigned, comes from a DNS server of the tests. It is a private instance:
 * configuration, keys and zones are in the given directory, and it listens on a free port of loopback. The system's resolver
 * is not touched.
 *
 * The caller stops it and then removes the directory. A start that fails leaves nothing running.
 *
 * BUGS: made for Debian and its relatives. The port is found first and used a moment later; another program may take it in
 * between.
 */
import { execFile, spawn } from 'node:child_process';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../load/ports.ts';
import { isInstalled } from '../programs/programs.ts';
import { until } from '../until.ts';

export interface SignedZone {
  name: string;
  /** Lines of a zone file, with names relative to the zone; SOA and NS are added. */
  records: string[];
  /** Changes the signed zone file without signing it again, as an attacker in the path would. */
  forge?(signed: string): string;
  /** Unbound trusts a key other than the one that signed the zone. */
  wrongKey?: boolean;
}

export interface Unbound {
  /** `127.0.0.1:PORT`. */
  address: string;
  stop(): Promise<void>;
}

const install = 'DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends unbound ldnsutils';

/** A sentence that says why Unbound cannot be started here and what to do; null if it can. */
export function obstacle(): string | null {
  const missing = ['unbound', 'ldns-keygen', 'ldns-signzone'].filter((program) => !isInstalled(program));
  if (missing.length === 0) return null;
  return `${missing.join(' and ')} not found; on Debian: apt-get update && ${install}`;
}

const run = promisify(execFile);

/** `dnsPort` is that of the DNS server on 127.0.0.1 with all names below .invalid that are in no zone. */
export async function startUnbound(options: {
  directory: string;
  zones: SignedZone[];
  dnsPort: number;
}): Promise<Unbound> {
  const { zones, dnsPort } = options;
  const directory = join(options.directory, 'unbound');
  await mkdir(directory);
  const port = await freePort('127.0.0.1');
  const signed = await Promise.all(zones.map((zone) => sign(zone, directory)));
  const config = join(directory, 'unbound.conf');
  await writeFile(config, unboundConf({ directory, port, dnsPort, signed }));
  const child = spawn('unbound', ['-d', '-p', '-c', config], { detached: true });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  const ended = once(child, 'exit');
  const stop = async () => {
    if (child.exitCode !== null) return;
    child.kill('SIGTERM');
    await ended;
  };
  const address = `127.0.0.1:${port}`;
  try {
    await until(async () => child.exitCode !== null || (await answers(address)), {
      what: () => `Unbound: ${output}`,
    });
    if (child.exitCode !== null) throw new Error(`Unbound does not start: ${output}`);
  } catch (error) {
    await stop();
    throw error;
  }
  return { address, stop };
}

async function answers(address: string): Promise<boolean> {
  const resolver = new Resolver({ timeout: 5_000, tries: 1 });
  resolver.setServers([address]);
  // By default Unbound answers this name itself (RFC 6761 section 6.3).
  return resolver.resolve4('localhost').then(
    () => true,
    () => false,
  );
}

interface Signed {
  name: string;
  zoneFile: string;
  /** A DS record in the format that Unbound reads. */
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

/** It is authoritative for the zones only towards itself, so its answers about them are validated. */
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
