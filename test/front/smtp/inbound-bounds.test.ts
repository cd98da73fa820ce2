/** What clients may take up: connections, time, memory. However they try, others are served. */
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { createMemoryBudget } from '#front/smtp/memory-budget.ts';
import { receive } from '#front/smtp/receive-message.ts';
import { manualClock } from '#lab/clock.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { freePort } from '#lab/load/ports.ts';
import { ownCertificate, startListener } from '#lab/mx/listener.ts';
import { connectSmtp, plain, type SmtpClient } from '#lab/mx/smtp-client.ts';
import { until } from '#lab/until.ts';
import { systemClock } from '#platform/base/clock.ts';
import { ByteBudget } from '#platform/base/limits/byte-budget.ts';
import { createMinimumRate } from '#platform/base/minimum-rate.ts';
import { loadConfig } from '#platform/settings/config.ts';
import { SmtpRefusal } from '#platform/values/mail-handler.ts';
import { openListeners } from '#server/smtp-listeners.ts';

const mebi = 1024 * 1024;

async function inData(port: number, options = {}): Promise<SmtpClient> {
  const talk = await connectSmtp(port, options);
  await talk.says('EHLO x\r\n', '250');
  await talk.begins('<>', '<ann@ours.invalid>');
  return talk;
}

async function mail(port: number, options = {}): Promise<string> {
  const talk = await inData(port, options);
  const reply = await talk.says('Subject: x\r\n\r\nx\r\n.\r\n', '250');
  talk.close();
  return reply;
}

test('an address has so many connections, all have so many; one that has gone makes room', async (t) => {
  const { port } = await startListener(t, { max: 5, perClient: 3 });
  const refused = async (from: string) => {
    const talk = await connectSmtp(port, { from, greeted: false });
    return talk.over();
  };
  const first = await Promise.all([1, 2, 3].map(() => connectSmtp(port, { from: '127.0.0.5' })));
  t.regex(await refused('127.0.0.5'), /^421 4\.7\.0 Too many connections from your address/);
  await Promise.all([1, 2].map(() => connectSmtp(port, { from: '127.0.0.6' })));
  t.regex(await refused('127.0.0.7'), /^421 4\.7\.0 Too many connections\./);
  // One that has gone over to TLS counts as long as it is there, and no longer.
  await first[0]!.says('EHLO x\r\n', '250');
  await first[0]!.says('STARTTLS\r\n', '220');
  await first[0]!.secure();
  t.regex(await refused('127.0.0.5'), /^421 4\.7\.0 Too many connections from your address/);
  first[0]!.close();
  await until(async () => (await connectSmtp(port, { from: '127.0.0.7', greeted: false })).reply('220'));
});

test('the limits of connections hold for implicit TLS, in its handshake too', async (t) => {
  const { port } = await startListener(t, { implicitTls: true, perClient: 2 });
  const silent = await connectSmtp(port, { from: '127.0.0.5', greeted: false });
  const talk = await connectSmtp(port, { from: '127.0.0.5', tls: true });
  const third = await connectSmtp(port, { from: '127.0.0.5', greeted: false });
  await third.over();
  silent.close();
  talk.close();
  await until(async () =>
    (await connectSmtp(port, { from: '127.0.0.5', tls: true, greeted: false })).reply('220'),
  );
  t.is(third.received, '');
});

test.serial(
  'a client that says nothing, or a command slowly, is cut off; one that is logged in may take longer',
  async (t) => {
    const timeouts = { stranger: 2000, command: 60_000, message: 60_000 };
    const { port } = await startListener(t, { timeouts });
    const known = await connectSmtp(port);
    await known.says('EHLO x\r\n', '250');
    await known.says('MAIL FROM:<>\r\n', '250');
    await known.says('RCPT TO:<ann@ours.invalid>\r\n', '250');
    const idle = await connectSmtp(port);
    const dribbling = await connectSmtp(port);
    const drip = setInterval(() => dribbling.write('N'), 50);
    t.teardown(() => clearInterval(drip));
    t.is(await idle.over(), '421 4.4.2 Timeout: the client is too slow');
    t.is(await dribbling.over(), '421 4.4.2 Timeout: the client is too slow');
    t.false(known.isOver);
  },
);

test.serial('a message that comes slowly is cut off, and is not taken', async (t) => {
  const timeouts = { stranger: 60_000, command: 60_000, message: 300 };
  const { port, taken, errors } = await startListener(t, { timeouts });
  const talk = await inData(port);
  const drip = setInterval(() => talk.write('x\r\n'), 50);
  t.teardown(() => clearInterval(drip));
  t.is(await talk.over(), '421 4.4.2 Timeout: the client is too slow');
  t.deepEqual([taken, errors], [[], []]);
});

test.serial(
  'a message must keep up the minimum rate: one that falls behind is cut off, one that keeps up is not',
  async (t) => {
    const minimumRate = createMinimumRate({ clock: systemClock, bytesPerSecond: 1000, graceMs: 2000 });
    const { port, taken, errors } = await startListener(t, { minimumRate });
    const slow = await inData(port);
    const steady = await inData(port);
    const started = performance.now();
    const drips = [
      setInterval(() => slow.write('x\r\n'), 50),
      setInterval(() => steady.write(`${'x'.repeat(498)}\r\n`), 50),
    ];
    t.teardown(() => {
      for (const drip of drips) clearInterval(drip);
    });
    t.is(await slow.over(), '421 4.4.2 Timeout: the client is too slow');
    // Until the steady one is certainly past its grace, too.
    await until(() => performance.now() - started > 2500);
    clearInterval(drips[1]);
    await steady.says('.\r\n', '250');
    t.deepEqual([taken.length, errors], [1, []]);
  },
);

test.serial(
  'slow clients of port 25 take no memory from applications, nor from small returned mail',
  async (t) => {
    const { ports, taken } = await bothPorts(t);
    const line = `${'x'.repeat(98)}\r\n`;
    const large = line.repeat(Math.floor((8 * mebi) / 100) - 1);
    // Eight strangers that do not end their mails: seven eighths of the memory are for such as they are.
    const slow = await Promise.all(
      Array.from({ length: 8 }, (_, n) => inData(ports.inbound, { from: `127.0.0.${10 + n}` })),
    );
    await Promise.all(slow.slice(0, 7).map((talk) => talk.drained(large)));
    slow[7]!.write(`${large}.\r\n`);
    // A mail of 9 MB is too large for a stranger.
    const greedy = await connectSmtp(ports.inbound);
    await greedy.says('EHLO x\r\n', '250');
    await greedy.says(`MAIL FROM:<> SIZE=${9 * mebi}\r\n`, '552');
    greedy.close();

    await mail(ports.inbound, { from: '127.0.0.30' });
    const application = await connectSmtp(ports.submission, { tls: true });
    await application.says('EHLO x\r\n', '250');
    await application.says(`AUTH PLAIN ${plain('x')}\r\n`, '235');
    await application.begins('<a@ours.invalid>', '<ann@ours.invalid>');
    await application.says(`${large}.\r\n`, '250');
    // The eighth stranger's came before both, and still waits for memory.
    t.deepEqual(taken, ['inbound', 'submission']);
    for (const talk of [...slow, application]) talk.close();
  },
);

test('clients that are gone give their memory back at once, also while they wait for more', async (t) => {
  const budget = createMemoryBudget({ max: 8 * mebi, perClient: 4 * mebi, timeoutMs: 3_600_000 });
  let waiting = 0;
  const clients = Array.from({ length: 2 }, () => {
    const stream = new PassThrough();
    const hold = budget.open('one');
    const add = (bytes: number) => {
      const given = hold.add(bytes);
      if (given === true) stream.write(Buffer.alloc(1.5 * mebi));
      else waiting += 1;
      return given;
    };
    const reading = receive(stream, { ...hold, add }, { largest: 4 * mebi });
    stream.write(Buffer.alloc(1.5 * mebi));
    return { stream, reading };
  });
  await until(() => waiting === 2);
  for (const { stream, reading } of clients) {
    stream.destroy(new Error('gone'));
    await t.throwsAsync(reading, { message: 'gone' });
  }
  t.is(budget.open('one').add(4 * mebi), true);
});

test('what waits for memory is refused for the sake of its own line only', async (t) => {
  const clock = manualClock(0);
  const bounds = { max: 8 * mebi, reserve: mebi, ofOne: 4 * mebi, timeoutMs: 5000 };
  const budget = new ByteBudget({ ...bounds, clock });
  const gone = budget.open('organization', 'a network that has hung up');
  t.is(gone.add(3 * mebi), true);
  const first = gone.add(2 * mebi);
  await clock.advance(1000);
  const other = budget.open('organization', 'another');
  t.is(other.add(mebi / 2), true);
  const second = other.add(mebi);
  await clock.advance(4000);
  t.false(await first);
  gone.release();
  t.true(await second);
});

test("clients of port 25 take no connections from applications, and one client an eighth of its port's", async (t) => {
  const { ports } = await bothPorts(t, { POSTERN_SMTP_CONNECTIONS: '8' });
  const refused = async (port: number, from: string) =>
    (await connectSmtp(port, { from, greeted: false })).over();
  const strangers = await Promise.all(
    Array.from({ length: 8 }, (_, n) => connectSmtp(ports.inbound, { from: `127.0.0.${10 + n}` })),
  );
  t.regex(await refused(ports.inbound, '127.0.0.10'), /^421 4\.7\.0 Too many connections from your address/);
  t.regex(await refused(ports.inbound, '127.0.0.30'), /^421 4\.7\.0 Too many connections\./);
  const applications = await Promise.all([1, 2].map(() => connectSmtp(ports.submission, { tls: true })));
  for (const talk of [...strangers, ...applications]) talk.close();
});

/** Both kinds of ports as the service opens them, in front of handlers that note where a mail came in. */
async function bothPorts(t: ExecutionContext, settings: Record<string, string> = {}) {
  const dataDir = await temporaryDirectory(t);
  const ports = { inbound: await freePort('127.0.0.1'), submission: await freePort('127.0.0.1') };
  const taken: string[] = [];
  const handler = (name: string) => ({
    async onMailFrom() {},
    async onRcpt() {},
    async onMessage() {
      taken.push(name);
      return 'Taken';
    },
  });
  const certificate = await ownCertificate(t);
  const listeners = await openListeners({
    config: loadConfig({
      POSTERN_DATA_DIR: dataDir,
      POSTERN_SMTP_HOST: '127.0.0.1',
      ...settings,
      POSTERN_INBOUND_PORT: String(ports.inbound),
      POSTERN_SUBMISSION_TLS_PORT: String(ports.submission),
    }),
    submission: { ...handler('submission'), authenticate: async () => ({}) },
    inbound: { ...handler('inbound'), authenticate: null },
    openCertificate: () => certificate,
    onError: (_, error) => t.fail(String(error)),
  });
  t.teardown(() => listeners.close());
  return { ports, taken };
}

test.serial('a client is not cut off while its message is being stored', async (t) => {
  const timeouts = { stranger: 60_000, command: 1000, message: 1000 };
  const { port } = await startListener(t, {
    timeouts,
    handler: { onMessage: () => sleep(1500, 'Taken at last') },
  });
  const talk = await inData(port);
  talk.write('x\r\n.\r\n');
  t.is(await talk.reply('250'), '250 2.6.0 Taken at last\r\n');
});

test('five hundred idle connections: mail goes through', async (t) => {
  const { port, taken } = await startListener(t, { max: 1000, perClient: 100 });
  const idle = await Promise.all(
    Array.from({ length: 500 }, (_, n) => connectSmtp(port, { from: `127.0.1.${1 + (n % 10)}` })),
  );
  await mail(port);
  t.is(taken.length, 1);
  for (const talk of idle) talk.close();
});

// Alone, because the memory of the process is that of all tests of the room.
test.serial(
  'a gigabyte of DATA is cut off, while others are served, and memory stays where it was',
  async (t) => {
    const { port, taken } = await startListener(t, { bounds: { largest: 20 * mebi } });
    const flood = await inData(port, { from: '127.0.0.5' });
    const piece = Buffer.from(`${'x'.repeat(98)}\r\n`.repeat(10_000));
    const before = process.memoryUsage.rss();
    let highest = before;
    let written = 0;
    const pouring = (async () => {
      for (; written < 1024 * mebi && !flood.isOver; written += piece.length) {
        await flood.drained(piece);
        highest = Math.max(highest, process.memoryUsage.rss());
      }
    })();
    for (let n = 0; n < 5; n++) await mail(port);
    await pouring;
    t.regex(flood.received, /\r\n552 5\.3\.4 The message is far larger than the limit\r\n$/);
    await flood.over();
    t.true(highest - before < 150 * mebi, `${(highest - before) / mebi} MiB more`);
    t.is(taken.length, 5);
  },
);

test('a message somewhat too large is read to its end, and then refused', async (t) => {
  const { port, taken } = await startListener(t, { bounds: { largest: 1000 } });
  const talk = await inData(port);
  await talk.says(`${'x\r\n'.repeat(500)}.\r\n`, '552 5.3.4 The message is larger than 1000 bytes');
  await talk.says('MAIL FROM:<> SIZE=1001\r\n', '552 5.3.4');
  await talk.says('MAIL FROM:<> SIZE=1000\r\n', '250');
  t.deepEqual(taken, []);
});

test('where there is no room for a message it is put off; what others give back is used', async (t) => {
  const memoryBudget = createMemoryBudget({ max: 4 * mebi, perClient: 2 * mebi, timeoutMs: 300 });
  let read = 0;
  const { port, taken } = await startListener(t, {
    memoryBudget: {
      open(client) {
        const hold = memoryBudget.open(client);
        let held = 0;
        const add = async (bytes: number) => {
          const isGiven = await hold.add(bytes);
          if (isGiven) held += bytes;
          read = Math.max(read, held);
          return isGiven;
        };
        return { ...hold, add };
      },
    },
    bounds: { largest: 2 * mebi },
  });
  const line = `${'x'.repeat(98)}\r\n`;
  const large = line.repeat(Math.floor((1.5 * mebi) / 100));
  const first = await inData(port, { from: '127.0.0.5' });
  first.write(large);
  await until(() => read > mebi, { what: () => `the first message to be read; ${read} bytes are` });
  const second = await inData(port, { from: '127.0.0.5' });
  const reply = second.says(`${large}.\r\n`, '451 4.3.1');
  t.regex(await reply, /Retry in 10 s/, 'a client has half of it all');
  const small = await inData(port, { from: '127.0.0.5' });
  await small.says(`${line.repeat(4000)}.\r\n`, '250');
  const third = await inData(port, { from: '127.0.0.6' });
  await third.says(`${large}.\r\n`, '250');
  await first.says('.\r\n', '250');
  await second.begins('<>', '<ann@ours.invalid>');
  await second.says(`${large}.\r\n`, '250');
  t.is(taken.length, 4, 'what has been read counts, and no more');
});

test('twenty errors, or a hundred commands without a message, are enough', async (t) => {
  const { port } = await startListener(t);
  const wrong = await connectSmtp(port);
  await wrong.says('EHLO x\r\n', '250');
  await wrong.says('MAIL FROM:<>\r\n', '250');
  for (let n = 0; n < 19; n++) await wrong.says(`RCPT TO:<a${n}@there.invalid>\r\n`, '550');
  wrong.write('RCPT TO:<b@there.invalid>\r\n');
  t.is(await wrong.over(), '421 4.7.0 Too many errors');

  const busy = await connectSmtp(port);
  for (let n = 0; n < 100; n++) busy.write('NOOP\r\n');
  busy.write('NOOP\r\n');
  t.is(await busy.over(), '421 4.7.0 Too many commands without a message');
});

test('a client that hangs up in the middle leaves nothing behind', async (t) => {
  const { port, taken, errors } = await startListener(t);
  const talk = await inData(port);
  talk.write('Subject: half a');
  talk.close();
  await mail(port);
  t.is(taken.length, 1);
  t.deepEqual(errors, []);
});

test('an error of ours is 451, is logged, and the session goes on', async (t) => {
  const { port, errors } = await startListener(t, {
    handler: {
      onMailFrom: async () => {
        throw new Error('no database');
      },
    },
  });
  const talk = await connectSmtp(port);
  await talk.says('EHLO x\r\n', '250');
  await talk.says('MAIL FROM:<>\r\n', '451 4.3.0');
  await talk.says('NOOP\r\n', '250');
  t.is((errors[0] as Error).message, 'no database');
});

test('a handler’s refusal reads as it was written; it can break no line', async (t) => {
  const { port } = await startListener(t, {
    handler: {
      onRcpt: async () => {
        throw new SmtpRefusal(550, '5.1.1', 'No\r\n250 yes');
      },
    },
  });
  const talk = await connectSmtp(port);
  await talk.says('EHLO x\r\n', '250');
  await talk.says('MAIL FROM:<>\r\n', '250');
  t.is(await talk.says('RCPT TO:<a@ours.invalid>\r\n', '550'), '550 5.1.1 No  250 yes\r\n');
});
