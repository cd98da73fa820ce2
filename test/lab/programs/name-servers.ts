/**
 * Real primary name servers (Debian's bind9 and knot) that take updates of one zone with a TSIG key, each in a directory of its
 * own.
 */
import { Resolver } from 'node:dns/promises';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../load/ports.ts';
import type { Server } from './serve.ts';
import { serve } from './serve.ts';

interface NameServerOptions {
  directory: string;
  zone: string;
  /** Lines of the zone file after SOA and NS. */
  records: string[];
  /** The secret in Base64. */
  key: { name: string; secret: string };
}

interface NameServer extends Server {
  port: number;
}

export const nameServers = {
  BIND: { program: '/usr/sbin/named', packages: 'bind9', start: startBind },
  Knot: { program: '/usr/sbin/knotd', packages: 'knot', start: startKnot },
};

/** The key may change TXT, MX and CNAME records, and no other. */
async function startBind(options: NameServerOptions): Promise<NameServer> {
  const { directory, zone, key } = options;
  const port = await freePort('127.0.0.1');
  const config = join(directory, 'named.conf');
  await writeFile(join(directory, 'zone'), zoneFile(options));
  await writeFile(
    config,
    `options {
  directory "${directory}";
  pid-file none;
  session-keyfile none;
  listen-on port ${port} { 127.0.0.1; };
  listen-on-v6 { none; };
  recursion no;
};
controls { };
key "${key.name}" { algorithm hmac-sha256; secret "${key.secret}"; };
zone "${zone}" {
  type primary;
  file "zone";
  update-policy { grant ${key.name} zonesub TXT MX CNAME; };
};
`,
  );
  const server = await serve(['/usr/sbin/named', '-g', '-c', config], () => hasZone(port, zone));
  return { ...server, port };
}

async function startKnot(options: NameServerOptions): Promise<NameServer> {
  const { directory, zone, key } = options;
  const port = await freePort('127.0.0.1');
  const config = join(directory, 'knot.conf');
  await writeFile(join(directory, 'zone'), zoneFile(options));
  await writeFile(
    config,
    `server:
    listen: 127.0.0.1@${port}
    rundir: "${directory}"
log:
  - target: stderr
    any: info
database:
    storage: "${directory}"
key:
  - id: ${key.name}
    algorithm: hmac-sha256
    secret: ${key.secret}
acl:
  - id: update
    key: ${key.name}
    action: update
    update-type: [TXT, MX, CNAME]
zone:
  - domain: ${zone}
    storage: "${directory}"
    file: zone
    acl: update
`,
  );
  const server = await serve(['/usr/sbin/knotd', '-c', config], () => hasZone(port, zone));
  return { ...server, port };
}

/** It listens before it has read the zone. */
async function hasZone(port: number, zone: string): Promise<boolean> {
  const resolver = new Resolver();
  resolver.setServers([`127.0.0.1:${port}`]);
  return resolver.resolveSoa(zone).then(
    () => true,
    () => false,
  );
}

const zoneFile = ({ zone, records }: NameServerOptions) =>
  `$ORIGIN ${zone}.
$TTL 60
@ SOA ns hostmaster 1 3600 600 86400 60
@ NS ns
ns A 127.0.0.1
${records.join('\n')}
`;
