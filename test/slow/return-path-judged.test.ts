/**
 * A real Exim checks SPF and DKIM of our mail, and a real OpenDMARC makes its verdict of what Exim found: with a return path
 * under the sender's domain, DMARC passes by SPF alone and by DKIM alone.
 */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { dkimKey } from '#lab/dkim.ts';
import { startDns, type Zone } from '#lab/dns/dns.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { freePort } from '#lab/load/ports.ts';
import { testWithProgram } from '#lab/needing.ts';
import { eximMain, eximProgram, startExim } from '#lab/programs/exim.ts';
import { obstacleTo } from '#lab/programs/jail.ts';
import { openDmarcPrograms, startOpenDmarc } from '#lab/programs/opendmarc.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const own = 'bounces.sender.invalid';
const hostname = 'mx.there.invalid';
/** Exim's library for SPF lets every loopback address pass, so Exim is told that we come from this one. */
const ours = '192.0.2.77';
const [mxHost, resolver] = ['127.88.0.25', '127.88.0.53'];

const zone: Zone = {
  'there.invalid': { MX: [`10 ${hostname}`] },
  [hostname]: { A: [mxHost] },
  'postern.invalid': { A: [ours], TXT: ['v=spf1 a -all'] },
  'sender.invalid': { A: [ours] },
  [own]: { CNAME: ['postern.invalid'] },
  '_dmarc.sender.invalid': { TXT: ['v=DMARC1; p=reject'] },
  [`${dkimKey.selector}._domainkey.sender.invalid`]: { TXT: [`v=DKIM1; k=rsa; p=${dkimKey.publicKey}`] },
};

const hasSpf = () => /Support for:.* SPF\b/.test(execFileSync(eximProgram, ['-bV'], { encoding: 'utf8' }));
const canRun = obstacleTo([eximProgram, ...openDmarcPrograms], undefined) === null && hasSpf();

/** Exim notes what it finds and refuses nothing. */
const config = (port: number) => `${eximMain({ host: '127.0.0.1', port, hostname })}
hosts_proxy = 127.0.0.1
tls_advertise_hosts =
acl_smtp_rcpt = rcpt
acl_smtp_data = data
begin acl
rcpt:
  warn spf = pass : fail : softfail : none : neutral : temperror : permerror
  accept domains = there.invalid
data:
  accept add_header = :at_start:\${authresults {${hostname}}}
begin routers
mailbox:
  driver = accept
  transport = maildir
begin transports
maildir:
  driver = appendfile
  directory = /mail/ann
  maildir_format
  user = Debian-exim
`;

/** The PROXY protocol, version 1, in front of what a client says. */
async function startProxy(t: ExecutionContext, port: number, target: number) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const behind = connect(target, '127.0.0.1');
    behind.write(`PROXY TCP4 ${ours} 192.0.2.25 40000 25\r\n`);
    for (const one of [socket, behind]) {
      sockets.add(one);
      one.on('error', () => one.destroy());
    }
    socket.pipe(behind).pipe(socket);
  }).listen(port, mxHost);
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
}

async function startJudged(t: ExecutionContext) {
  const world = await startWorld(t, {
    zone: { ...zone, [own]: 'SERVFAIL' },
  });
  const dns = await startDns(zone, { host: resolver, port: 53 });
  t.teardown(() => dns.close());
  const directory = await temporaryDirectory(t);
  const inside = async (name: string) => {
    const place = join(directory, name);
    await mkdir(place);
    await chmod(place, 0o755);
    return place;
  };
  const port = await freePort('127.0.0.1');
  await startProxy(t, world.mx[0]!.port, port);
  const pemFile = fileURLToPath(new URL('../fixtures/mx.pem', import.meta.url));
  const options = { host: '127.0.0.1', port, hostname, domain: 'there.invalid', mailboxes: ['ann'], pemFile };
  const receiver = await startExim(
    {
      ...options,
      directory: await inside('exim'),
      files: { '/etc/resolv.conf': `nameserver ${resolver}\n` },
    },
    config(port),
  );
  t.teardown(() => receiver.stop());
  const openDmarc = await startOpenDmarc({
    directory: await inside('opendmarc'),
    dnsHost: resolver,
    hostname,
  });
  t.teardown(() => openDmarc.stop());
  let count = 0;
  /** What Exim found in the next mail, and OpenDMARC's verdict of all of it, of SPF alone and of DKIM alone. */
  const judged = async () => {
    const { emailId } = (await world.send({ to: 'ann@there.invalid', subject: `Mail ${++count}` })).body;
    await world.when(emailId, ({ status }) => status === 'delivered');
    const files = await receiver.mails('ann', count);
    const mail = files.map(String).find((text) => text.includes(`Subject: Mail ${count}\n`))!;
    const [, results, rest] = /^Authentication-Results: (.+\n(?:[ \t].+\n)*)([\s\S]*)$/m.exec(mail)!;
    const found = results!.replace(/\s+/g, ' ').trim();
    const only = (method: string) =>
      found
        .split('; ')
        .filter((part, at) => at === 0 || part.startsWith(method))
        .join('; ');
    const from = /envelope-from <([^>]+)>/.exec(rest!)![1]!;
    const verdict = (text: string) => openDmarc.judge(`Authentication-Results: ${text}\n${rest}`, from);
    const all = await verdict(found);
    return { found, all, bySpf: await verdict(only('spf=')), byDkim: await verdict(only('dkim=')) };
  };
  return { world, dns, judged };
}

testWithProgram(canRun)(
  'SPF is aligned and DMARC passes twice with a return path under the domain (needs exim4-daemon-heavy, opendmarc, miltertest, root)',
  async (t) => {
    const { world, dns, judged } = await startJudged(t);
    const before = await judged();
    t.log(before);
    t.regex(before.found, /spf=pass .*smtp\.mailfrom=\S*postern\.invalid/);
    t.regex(before.all, /^dmarc=pass/);
    t.regex(before.bySpf, /^dmarc=fail/, "the server's return path is not aligned");
    t.regex(before.byDkim, /^dmarc=pass/);

    world.dns.set({ [own]: zone[own]! });
    await world.call('POST', '/api/public/domains/sender.invalid/verify');
    await until(async () => {
      await world.clock.jump(1_000);
      return (await world.db('domains').first('return_path')).return_path === 'used';
    });
    await world.clock.jump(2_000);
    const after = await judged();
    t.log(after);
    t.regex(after.found, /spf=pass .*smtp\.mailfrom=\S*bounces\.sender\.invalid/);
    t.regex(after.found, /dkim=pass .*header\.d=sender\.invalid/);
    for (const verdict of [after.all, after.bySpf, after.byDkim]) t.regex(verdict, /^dmarc=pass/);

    dns.set({ 'postern.invalid': { A: ['192.0.2.78'], TXT: ['v=spf1 a -all'] } });
    // Exim keeps what it looked up for as long as the connection lasts.
    await world.restart();
    const forged = await judged();
    t.log(forged);
    t.regex(forged.found, /spf=fail/, 'from another address, Exim says so');
    t.regex(forged.bySpf, /^dmarc=fail/);
    t.regex(forged.all, /^dmarc=pass/, 'DKIM is enough');
  },
);
