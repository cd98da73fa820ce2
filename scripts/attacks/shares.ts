/** Item 12: what one client or organization can take of what all share: turns of the event loop and connections. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import tls from 'node:tls';
import { insertDomain } from '#accounts/rows/domains-table.ts';
import { callJson } from '#lab/ask.ts';
import { until } from '#lab/until.ts';
import { type Attack, type Verdict, verdict } from './attack.ts';
import { addresses, orgIdOf, type Scene } from './scene.ts';

const connections = 300;
const pipelined = 16;
const askingMs = 4_000;

/** Each connection sends its requests at once, and again when they are answered. */
async function pipelinedRequests({ url, connect }: Scene): Promise<Verdict> {
  const requests = 'GET /api/public/emails HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(pipelined);
  const end = Date.now() + askingMs;
  let answered = 0;
  for (let n = 0; n < connections; n++) {
    const socket = connect(Number(new URL(url).port), '127.0.0.70');
    let open = pipelined;
    socket.on('data', (chunk) => {
      const heads = chunk.toString('latin1').split('HTTP/1.1 ').length - 1;
      answered += heads;
      open -= heads;
      if (open > 0 || Date.now() > end) return;
      open = pipelined;
      socket.write(requests);
    });
    socket.write(requests);
  }
  await sleep(askingMs);
  return verdict(`${answered} requests answered`, [
    answered > connections * pipelined,
    'too few requests were answered: nothing was measured',
  ]);
}

/** Commands that do nothing, as many at once as a session may have. */
async function pipelinedCommands({ ports, connect }: Scene): Promise<Verdict> {
  const end = Date.now() + askingMs;
  let answered = 0;
  while (Date.now() < end) {
    const sockets = addresses(71, 6).flatMap((from) =>
      Array.from({ length: 50 }, () => {
        const socket = connect(ports.inbound, from);
        socket.on('data', (chunk) => {
          answered += chunk.toString('latin1').split('\n').length - 1;
        });
        socket.once('end', () => socket.end());
        socket.once(
          'data',
          () => socket.write('EHLO x\r\n').valueOf() && socket.write('NOOP\r\n'.repeat(101)),
        );
        return socket;
      }),
    );
    await Promise.all(sockets.map((socket) => once(socket, 'close')));
  }
  return verdict(`${answered} replies`, [answered > 1_000, 'too few replies: nothing was measured']);
}

const places = 1_000;
const ofOneAddress = 50;

/** One key, logged in and idle from so many addresses that all places are taken; then another organization logs in. */
async function idleLogins(scene: Scene): Promise<Verdict> {
  const [idle, other] = [await scene.addTenant(), await scene.addTenant()];
  const from = addresses(72, places / ofOneAddress).flatMap((address) =>
    Array.from({ length: ofOneAddress }, () => address),
  );
  const replies = [];
  for (let n = 0; n < from.length; n += ofOneAddress)
    replies.push(
      ...(await Promise.all(from.slice(n, n + ofOneAddress).map((one) => logIn(scene, one, idle)))),
    );
  const held = replies.filter((reply) => reply.startsWith('235')).length;
  const after = await logIn(scene, '127.0.73.1', other);
  return verdict(
    `${held} of ${places} logged in; then another: ${after.slice(0, 3)}`,
    [held > 0, 'nobody could log in: nothing was measured'],
    [after.startsWith('235'), `another organization cannot log in: ${after || 'no reply'}`],
  );
}

/** The last reply; empty if the connection was closed without one. */
async function logIn({ ports, connect }: Scene, from: string, key: string): Promise<string> {
  const socket = connect(ports.submission, from);
  const secure = tls.connect({ socket, rejectUnauthorized: false });
  // A connection that is refused ends before its handshake, which is an error to the client; it closes then.
  secure.on('error', () => {});
  const closed = new Promise<string>((resolve) => secure.once('close', () => resolve('')));
  const reply = () =>
    Promise.race([
      closed,
      new Promise<string>((resolve) => secure.once('data', (data) => resolve(String(data)))),
    ]);
  if (!(await reply())) return '';
  secure.write('EHLO x\r\n');
  await reply();
  secure.write(`AUTH PLAIN ${Buffer.from(`\0x\0${key}`).toString('base64')}\r\n`);
  return reply();
}

const silentDomains = 60;
/** Statistics are summed up every ten seconds. */
const maxWaitMs = 25_000;

/** An organization whose domains' DNS does not answer, while the server looks them up. */
async function silentDns({ db, dns, url, key, addTenant }: Scene): Promise<Verdict> {
  const orgId = await orgIdOf(db, await addTenant());
  const names = Array.from({ length: silentDomains }, (_, n) => `silent${n}.invalid`);
  const asked = names.flatMap((name) => [`s._domainkey.${name}`, `bounces.${name}`]);
  dns.set(Object.fromEntries(asked.map((name) => [name, 'TIMEOUT' as const])));
  const dkim = { dkimSelector: 's', dkimPublicKey: 'p', dkimPrivateKey: 'k' };
  const addedAt = Date.now() - 120_000;
  await db.transaction(async (trx) => {
    for (const name of names) await insertDomain(trx, { orgId, name, ...dkim }, addedAt);
  });
  await until(() => dns.queries.some(({ name }) => asked.includes(name)), { timeout: maxWaitMs });
  const owner = await orgIdOf(db, key);
  const sentOf = async () =>
    Number((await db('statistics').where({ org_id: owner }).sum('sent as sent'))[0]!.sent);
  const before = await sentOf();
  const mail = { from: 'app@sender.invalid', to: 'ann@there.invalid', subject: 'x', text: 'x' };
  await callJson(`${url}/api/public/email/send`, key, 'POST', mail);
  const begun = Date.now();
  const isCounted = async () => (await sentOf()) > before;
  const counted = await until(isCounted, { timeout: 60_000 }).catch(() => false);
  const ms = Date.now() - begun;
  return verdict(
    `${silentDomains} domains; another organization's mail is in the statistics after ${Math.round(ms / 1000)} s`,
    [
      counted !== false && ms <= maxWaitMs,
      `statistics waited ${Math.round(ms / 1000)} s for DNS of a stranger`,
    ],
  );
}

export const shares: Attack[] = [
  {
    item: 12,
    name: `${connections} connections, ${pipelined} requests each`,
    maxStallMs: 150,
    run: pipelinedRequests,
  },
  { item: 12, name: '300 sessions of port 25, 100 commands each', maxStallMs: 150, run: pipelinedCommands },
  { item: 12, name: 'one key, idle on every connection', run: idleLogins },
  { item: 12, name: 'domains whose DNS does not answer', timeoutMs: 120_000, run: silentDns },
];
