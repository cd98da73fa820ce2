/** Mail servers that send to one address as fast as they are told, as a process by themselves. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { setPriority } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Flood {
  port: number;
  to: string;
  perSecond: number;
  connections: number;
}

/** How many mails got which reply, by its code, in how many seconds. */
export interface Flooded {
  seconds: number;
  replies: Record<string, number>;
}

export async function startFlood(flood: Flood): Promise<{ stop(): Promise<Flooded> }> {
  const child = fork(import.meta.filename, [JSON.stringify(flood)]);
  await once(child, 'message');
  return {
    async stop() {
      const answer = once(child, 'message');
      const ended = once(child, 'exit');
      child.send('stop');
      const [flooded] = await answer;
      await ended;
      return flooded;
    },
  };
}

// From here on: the process.

const mail = [
  'From: Ann <ann@there.invalid>',
  'To: orders@flood.invalid',
  'Subject: Flood',
  'MIME-Version: 1.0',
  'Content-Type: multipart/mixed; boundary=b',
  '',
  '--b',
  'Content-Type: text/plain; charset=utf-8',
  '',
  'Good morning, I have a question about my order.\r\n'.repeat(20),
  '--b',
  'Content-Type: application/pdf; name=order.pdf',
  'Content-Disposition: attachment; filename=order.pdf',
  'Content-Transfer-Encoding: base64',
  '',
  `${'JVBERi0xLjQKJeLjz9MKMSAwIG9iago8PC9UeXBlL0NhdGFsb2c+PgplbmRvYmoKMiAwIG9iago8'}\r\n`.repeat(40),
  '--b--',
  '.',
  '',
].join('\r\n');

interface Talk {
  /** Resolves to the next reply; rejects when the server has hung up. */
  says(text: string): Promise<string>;
  close(): void;
}

async function converse(port: number, localAddress: string): Promise<Talk> {
  const socket = net.connect({ host: '127.0.0.1', port, localAddress, noDelay: true }).setEncoding('latin1');
  let heard = '';
  let waiting = Promise.withResolvers<string>();
  socket.on('error', () => {});
  socket.on('data', (text) => {
    heard += text;
    const reply = /^(?:\d{3}-.*\r\n)*\d{3}(?: .*)?\r\n/.exec(heard)?.[0];
    if (reply === undefined) return;
    heard = heard.slice(reply.length);
    waiting.resolve(reply);
  });
  socket.on('close', () => waiting.reject(new Error('the server has hung up')));
  const says = (text: string) => {
    waiting = Promise.withResolvers();
    if (socket.destroyed) waiting.reject(new Error('the server has hung up'));
    else socket.write(text);
    return waiting.promise;
  };
  await waiting.promise;
  await says('EHLO there.invalid\r\n');
  return { says, close: () => socket.destroy() };
}

/** Each is another network. */
const addressOf = (connection: number) => `127.1.${connection % 250}.${1 + Math.floor(connection / 250)}`;

async function flood({ port, to, perSecond, connections }: Flood): Promise<void> {
  const replies: Flooded['replies'] = {};
  const begun = performance.now();
  let isOver = false;
  let sent = 0;
  const isDue = () => sent < ((performance.now() - begun) / 1000) * perSecond;
  process.once('message', () => {
    isOver = true;
  });
  const note = (reply: string) => {
    replies[reply.slice(0, 3)] = (replies[reply.slice(0, 3)] ?? 0) + 1;
  };
  const work = async (connection: number) => {
    let talk: Talk | null = null;
    while (!isOver) {
      if (!isDue()) {
        await sleep(5);
        continue;
      }
      sent += 1;
      try {
        talk ??= await converse(port, addressOf(connection));
        await talk.says('MAIL FROM:<ann@there.invalid>\r\n');
        const answer = await talk.says(`RCPT TO:<${to}>\r\n`);
        const isTaken = answer.startsWith('250');
        if (isTaken) await talk.says('DATA\r\n');
        note(isTaken ? await talk.says(mail) : answer);
        if (!isTaken) await talk.says('RSET\r\n');
      } catch {
        note('cut');
        talk?.close();
        talk = null;
        await sleep(50);
      }
    }
    talk?.close();
  };
  process.send!('ready');
  await Promise.all(Array.from({ length: connections }, (_, connection) => work(connection)));
  process.send!({ seconds: (performance.now() - begun) / 1000, replies }, () => process.exit());
}

if (import.meta.main) {
  process.on('SIGINT', () => {});
  // As if it were another machine: it takes what the server leaves.
  setPriority(19);
  process.on('disconnect', () => process.exit());
  void flood(JSON.parse(process.argv[2]!));
}
