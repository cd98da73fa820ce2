/**
 * A real OpenDKIM as a milter on a socket of its own: one that verifies what a mail exchanger receives, and one that signs
 * what a Postfix sends. A private instance like that Postfix (postfix.ts), in the directory given.
 *
 * Whoever starts it stops it; a start that fails has left nothing running. Started by root, it gives the privilege up.
 *
 * BUGS: made for Debian and its relatives: to verify, OpenDKIM must be built with unbound, which can ask a DNS at
 * another port than 53.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '../../test/helpers/until.ts';
import { makeDirectory } from './programs.ts';

export interface OpenDkim {
  /** What Postfix is to be given as `smtpd_milters`. */
  milter: string;
  pid: number;
  stop(): Promise<void>;
}

/** OpenDKIM in verifying mode, which looks keys up in the DNS at that port of 127.0.0.1 and in no other. */
export async function startOpenDkim(options: {
  directory: string;
  dnsPort: number;
  hostname?: string;
}): Promise<OpenDkim> {
  const { directory, dnsPort, hostname = 'mx1.invalid' } = options;
  const own = join(directory, 'opendkim');
  await makeDirectory(own, 'postfix');
  const resolver = join(own, 'unbound.conf');
  await writeFile(resolver, unboundConf(dnsPort));
  return startIn(own, verifying(resolver, hostname));
}

/** OpenDKIM in signing mode, for one domain and whatever comes from this machine. `privateKey`: PEM. */
export async function startSigner(options: {
  directory: string;
  domain: string;
  selector: string;
  privateKey: string;
}): Promise<OpenDkim> {
  const own = join(options.directory, 'opendkim');
  await makeDirectory(own, 'postfix');
  const keyFile = join(own, 'private.pem');
  await writeFile(keyFile, options.privateKey);
  return startIn(own, signing(options.domain, options.selector, keyFile));
}

/** Resolves when its socket is there. */
async function startIn(own: string, conf: string): Promise<OpenDkim> {
  const [config, socket] = ['opendkim.conf', 'socket'].map((name) => join(own, name));
  await writeFile(config!, `Background no\nSyslog no\nUserID postfix\nSocket local:${socket}\n${conf}`);
  const child = spawn('opendkim', ['-f', '-x', config!], { detached: true });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said += chunk));
  const ended = once(child, 'exit');
  const stop = async () => {
    // Asked politely it takes five seconds, and it has nothing to put in order.
    child.kill('SIGKILL');
    await ended;
  };
  try {
    await until(() => existsSync(socket!) || child.exitCode !== null, { what: 'the socket of OpenDKIM' });
    if (child.exitCode !== null) throw new Error(`OpenDKIM does not start: ${said}`);
  } catch (error) {
    await stop();
    throw error;
  }
  return { milter: `unix:${socket}`, pid: child.pid!, stop };
}

/** 127.0.0.1 counts as internal, whose mail would be signed instead of verified, unless it is told otherwise. */
function verifying(resolver: string, hostname: string): string {
  return `Mode v
AuthservID ${hostname}
AlwaysAddARHeader yes
InternalHosts 192.0.2.1
ResolverConfiguration ${resolver}
`;
}

/** As Postern signs: relaxed/relaxed, rsa-sha256. The key file is in a directory that others may enter. */
function signing(domain: string, selector: string, keyFile: string): string {
  return `Mode s
Domain ${domain}
Selector ${selector}
KeyFile ${keyFile}
RequireSafeKeys no
Canonicalization relaxed/relaxed
SignatureAlgorithm rsa-sha256
InternalHosts 127.0.0.0/8
`;
}

/** All of DNS is at one port; no DNSSEC; and .invalid, which unbound answers by itself (RFC 6761), is asked too. */
function unboundConf(dnsPort: number): string {
  return `server:
  do-not-query-localhost: no
  module-config: "iterator"
  local-zone: "invalid." nodefault
forward-zone:
  name: "."
  forward-addr: 127.0.0.1@${dnsPort}
`;
}
