/** The listener's surroundings: a balancer in front of it, a stop in the middle. */
import { createServer } from 'node:net';
import test from 'ava';
import { startListener } from '#lab/mx/listener.ts';
import { connectSmtp } from '#lab/mx/smtp-client.ts';
import { until } from '#lab/until.ts';
import { ListenError } from '#platform/base/net/tcp-listen.ts';

test('a PROXY header from a balancer tells the client; nobody else may send one, and the balancer must', async (t) => {
  const { port, taken } = await startListener(t, { proxies: ['127.0.0.4/31'], perClient: 1 });
  const send = async (from: string, header: string) => {
    const talk = await connectSmtp(port, { from, greeted: false });
    talk.write(header);
    return talk;
  };
  const header = (client: string) => `PROXY TCP4 ${client} 192.0.2.1 4711 25\r\n`;
  const talk = await send('127.0.0.5', header('198.51.100.7'));
  await talk.reply('220');
  await talk.says('EHLO x\r\n', '250');
  await talk.begins('<>', '<ann@ours.invalid>');
  await talk.says('x\r\n.\r\n', '250');
  t.is(taken[0]!.session.client.address, '198.51.100.7');
  t.regex(
    await (await send('127.0.0.5', header('198.51.100.7'))).over(),
    /^421 4\.7\.0 Too many connections/,
  );
  await (await send('127.0.0.5', header('198.51.100.8'))).reply('220');
  t.regex(await (await send('127.0.0.5', 'EHLO x\r\n')).over(), /Invalid PROXY/);
  t.regex(await (await send('127.0.0.6', header('198.51.100.9'))).over(), /^421 .*too soon/);
});

test('a stop ends idle sessions at once, gives a message that comes in a moment more, and answers one that is being stored', async (t) => {
  let decide = () => {};
  const decided = new Promise<void>((resolve) => {
    decide = resolve;
  });
  const listener = await startListener(t, {
    handler: {
      async onMessage(raw) {
        if (raw.includes('slow')) await decided;
        return 'Taken';
      },
    },
  });
  const inData = async () => {
    const talk = await connectSmtp(listener.port);
    await talk.says('EHLO x\r\n', '250');
    await talk.begins('<>', '<ann@ours.invalid>');
    return talk;
  };
  const idle = await connectSmtp(listener.port);
  const coming = await inData();
  const stuck = await inData();
  const deciding = await inData();
  deciding.write('slow\r\n.\r\n');
  // Until it has been read.
  await until(() => deciding.received.includes('354'));
  await (await connectSmtp(listener.port)).says('NOOP\r\n', '250');
  const closed = listener.close();
  t.regex(await idle.over(), /^421 4\.3\.2 /);
  await coming.says('x\r\n.\r\n', '250');
  t.regex(await coming.over(), /^421 4\.3\.2 /);
  t.regex(await stuck.over(), /^421 4\.3\.2 /, 'a moment is no more than a moment');
  t.false(deciding.isOver);
  decide();
  await deciding.reply('250');
  t.regex(await deciding.over(), /^421 4\.3\.2 /);
  await closed;
});

test('a port that is taken is said in one line, with the setting', async (t) => {
  const other = createServer().listen(0, '127.0.0.1');
  t.teardown(() => other.close());
  await until(() => other.address());
  const { port } = other.address() as { port: number };
  const error = await t.throwsAsync(startListener(t, { port, setting: 'POSTERN_SUBMISSION_PORT' }), {
    instanceOf: ListenError,
  });
  t.is(
    error!.message,
    `127.0.0.1:${port} is in use; stop the program that listens there, or set POSTERN_SUBMISSION_PORT`,
  );
});
