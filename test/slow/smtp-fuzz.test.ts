/**
 * Whatever a host answers, a mail is delivered only where the host has the whole message and has said 2xx to its dot,
 * and bounces only where it has said 5xx.
 */
import { once } from 'node:events';
import net from 'node:net';
import test from 'ava';
import fc from 'fast-check';
import { said, startDeliverer } from '#lab/scenes/deliverer.ts';

interface Facts {
  /** What followed the dot of a message that it was receiving. */
  afterDot: string | null;
  said: string;
}

/** Answers each command, and the end of a message, with the next of `answers`; then with nothing, and hangs up. */
async function startServer(answers: string[]) {
  const facts: Facts = { afterDot: null, said: '' };
  const left = [...answers];
  const server = net.createServer((socket) => {
    let received = '';
    let isData = false;
    const answer = () => {
      const text = left.shift();
      if (text === undefined) return void socket.end();
      facts.said += text;
      socket.write(text);
      return text;
    };
    const step = () => {
      const end = isData ? /^\.\r\n/m.exec(received) : /\r\n/.exec(received);
      if (!end) return false;
      const line = received.slice(0, end.index);
      received = received.slice(end.index + end[0].length);
      const reply = answer() ?? '';
      if (isData) facts.afterDot ??= reply;
      isData = !isData && line.startsWith('DATA') && reply.startsWith('354');
      return true;
    };
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      while (step());
    });
    answer();
  });
  server.listen(0, '127.0.0.4');
  await once(server, 'listening');
  return { facts, port: (server.address() as net.AddressInfo).port, close: () => server.close() };
}

const code = fc.constantFrom(
  '220',
  '250',
  '250',
  '250',
  '354',
  '354',
  '421',
  '450',
  '550',
  '554',
  '199',
  '600',
);
const line = fc
  .tuple(code, fc.constantFrom(' ok\r\n', '-more\r\n', '\r\n', ' \n', ' PIPELINING\r\n', ''))
  .map((parts) => parts.join(''));
const odd = fc.oneof(
  { weight: 6, arbitrary: line },
  { weight: 1, arbitrary: fc.tuple(line, line).map((lines) => lines.join('')) },
  { weight: 1, arbitrary: fc.constantFrom('\r\n', '\0', 'hello\r\n', '2', '\xff\xff\r\n') },
);
const proper = [
  '220 hi\r\n',
  '250-hi\r\n250 PIPELINING\r\n',
  '250 ok\r\n',
  '250 ok\r\n',
  '354 go\r\n',
  '250 ok\r\n',
];
/** A proper conversation with some answers replaced: what is all wrong is soon over. */
const conversation = fc
  .tuple(fc.boolean(), fc.array(fc.tuple(fc.nat(5), odd), { maxLength: 3 }), fc.array(odd, { maxLength: 2 }))
  .map(([isPipelined, changes, more]) => {
    const answers = [...proper];
    if (!isPipelined) answers[1] = '250 hi\r\n';
    for (const [at, answer] of changes) answers[at] = answer;
    return [...answers, ...more];
  });

const hosts = [{ addresses: ['127.0.0.4'] }];
const phases = ['greeting', 'ehlo', 'tls', 'mail', 'rcpt', 'data', 'dot'];
const timeouts = Object.fromEntries(phases.map((phase) => [phase, 300]));

test('delivered only by a 2xx to the dot, bounced only by a 5xx', async (t) => {
  const outcomes = new Set<string>();
  const conversations = fc.sample(conversation, { numRuns: 600, seed: 4 });
  const lanes = Array.from({ length: 30 }, async () => {
    for (let next = conversations.pop(); next; next = conversations.pop()) {
      const server = await startServer(next);
      const deliverer = startDeliverer(t, { port: server.port, hosts, timeouts });
      const attempt = await deliverer.deliver();
      await deliverer.pool.close();
      server.close();
      const { outcome } = attempt.verdict;
      outcomes.add(outcome);
      const why = `${JSON.stringify(next)}\n${said(attempt)}\n${JSON.stringify(server.facts)}`;
      // Of several codes, the last line's counts.
      if (outcome === 'delivered') t.regex(server.facts.afterDot ?? '', /^2\d\d(?!-)/m, why);
      if (outcome === 'bounced') t.regex(server.facts.said, /^5\d\d/m, why);
    }
  });
  await Promise.all(lanes);
  t.deepEqual([...outcomes].sort(), ['bounced', 'deferred', 'delivered']);
});
