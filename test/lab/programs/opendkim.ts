/**
 * A real OpenDKIM as a milter on its own socket: one that verifies what an MX host receives, and one that signs what a Postfix
 * sends. It is a private instance like that Postfix (postfix.ts), in the given directory.
 *
 * The caller stops it. A start that fails leaves nothing running. If root starts it, it drops its privileges.
 *
 * BUGS: made for Debian and its relatives. To verify, OpenDKIM must be built with unbound, which can query DNS at a port other
 * than 53.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { until } from '../until.ts';
import { makeDirectory } from './programs.ts';

export interface OpenDkim {
  /** Value for Postfix's `smtpd_milters`. */
  milter: string;
  pid: number;
  stop(): Promise<void>;
}

/** OpenDKIM in verifying mode. It looks keys up only in the DNS server at this port of 127.0.0.1. */
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

/** OpenDKIM in signing mode, for mail from one domain and from this machine. `privateKey` is PEM. */
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

/** Resolves when its socket exists. */
async function startIn(own: string, conf: string): Promise<OpenDkim> {
  const [config, socket] = ['opendkim.conf', 'socket'].map((name) => join(own, name));
  await writeFile(config!, `Background no\nSyslog no\nUserID postfix\nSocket local:${socket}\n${conf}`);
  const child = spawn('opendkim', ['-f', '-x', config!], { detached: true });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  const ended = once(child, 'exit');
  const stop = async () => {
    // A SIGTERM would take five seconds, and there is nothing to clean up.
    child.kill('SIGKILL');
    await ended;
  };
  try {
    await until(() => existsSync(socket!) || child.exitCode !== null, { what: 'the socket of OpenDKIM' });
    if (child.exitCode !== null) throw new Error(`OpenDKIM does not start: ${output}`);
  } catch (error) {
    await stop();
    throw error;
  }
  return { milter: `unix:${socket}`, pid: child.pid!, stop };
}

/** Without this list 127.0.0.1 counts as internal, and its mail is signed instead of verified. */
function verifying(resolver: string, hostname: string): string {
  return `Mode v
AuthservID ${hostname}
AlwaysAddARHeader yes
InternalHosts 192.0.2.1
ResolverConfiguration ${resolver}
`;
}

/** Signs as Postern does: relaxed/relaxed, rsa-sha256. The key file is in a directory that others may enter. */
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

/** All DNS queries go to one port, without DNSSEC, including those for .invalid, which unbound would answer itself (RFC 6761). */
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
