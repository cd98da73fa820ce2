/**
 * A real OpenDMARC (Debian's opendmarc), asked as a mail host asks it, by miltertest (Debian's package too): what it thinks of a
 * mail whose first field is the Authentication-Results of the host that received it (RFC 8601). It runs in a jail (jail.ts),
 * because it queries DNS only at port 53.
 */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort, listens } from '../load/ports.ts';
import { makeJail } from './jail.ts';

export const openDmarcPrograms = ['/usr/sbin/opendmarc', '/usr/bin/miltertest'];

interface OpenDmarcOptions {
  directory: string;
  /** Host of a DNS server at port 53. */
  dnsHost: string;
  /** The host whose Authentication-Results are believed. */
  hostname: string;
}

export interface OpenDmarc {
  /** The result in the field that OpenDMARC adds, such as `dmarc=pass (p=reject dis=none) header.from=…`. */
  judge(mail: string, envelopeFrom: string): Promise<string>;
  stop(): Promise<void>;
}

export async function startOpenDmarc({ directory, dnsHost, hostname }: OpenDmarcOptions): Promise<OpenDmarc> {
  const port = await freePort('127.0.0.1');
  const socket = `inet:${port}@127.0.0.1`;
  const config = [
    `AuthservID ${hostname}`,
    `TrustedAuthservIDs ${hostname}`,
    'PublicSuffixList /suffixes',
    'Syslog false',
    `Socket ${socket}`,
  ];
  const [program] = openDmarcPrograms as [string];
  const jail = await makeJail({
    directory,
    programs: [program],
    users: [],
    files: {
      '/opendmarc.conf': `${config.join('\n')}\n`,
      // Without a list, nothing is aligned but the same name.
      '/suffixes': 'invalid\n',
      '/etc/resolv.conf': `nameserver ${dnsHost}\n`,
      '/etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
    },
    directories: {},
  });
  const server = await jail.serve([program, '-f', '-c', '/opendmarc.conf'], () => listens('127.0.0.1', port));
  return {
    async judge(mail, envelopeFrom) {
      const file = join(directory, 'talk.lua');
      await writeFile(file, talk(socket, mail, envelopeFrom));
      const { stdout } = await promisify(execFile)('miltertest', ['-s', file]);
      return stdout.trim().replace(/^[^;]*; /, '');
    },
    stop: server.stop,
  };
}

/** The script for miltertest, which is in Lua. */
function talk(socket: string, mail: string, envelopeFrom: string): string {
  const [head] = mail.split(/\n\n/) as [string];
  const fields = head.split(/\n(?![ \t])/).map((field) => field.split(/:\s*([\s\S]*)/, 2));
  const text = (value: string) => JSON.stringify(value.replace(/\s+/g, ' '));
  return `
conn = mt.connect(${text(socket)})
mt.conninfo(conn, "sender", "127.88.0.9")
mt.helo(conn, "sender")
mt.mailfrom(conn, ${text(`<${envelopeFrom}>`)})
mt.rcptto(conn, "<ann@there.invalid>")
${fields.map(([name, value]) => `mt.header(conn, ${text(name!)}, ${text(value!)})`).join('\n')}
mt.eoh(conn)
mt.eom(conn)
mt.echo(mt.getheader(conn, "Authentication-Results", 0) or "none")
mt.disconnect(conn)
`;
}
