/** However a client's bytes are cut into pieces, they mean the same: no cut makes a fault, or hides one. */
import test from 'ava';
import fc from 'fast-check';
import { type StreamViolation, StrictStream } from '#front/smtp/strict-stream.ts';
import { costsAtMost } from '#lab/cost.ts';
import { runs } from '#lab/runs.ts';

/** What is made of the bytes, in order: commands, messages, and the fault at which it ended. */
async function meaningOf(pieces: Buffer[], largestMessage = 1000): Promise<string[]> {
  const events: string[] = [];
  const stream = new StrictStream({
    longestLine: 40,
    largestMessage: () => largestMessage,
    endsGroup: (line) => line.startsWith('LAST'),
    onMessageBytes() {},
    onViolation(fault: StreamViolation) {
      events.push(`fault ${fault}`);
      stream.isClosed = true;
    },
  });
  stream.oncommand = (command: Buffer, next = () => {}) => {
    events.push(`command ${command.toString('latin1')}`);
    if (command.toString() === 'SLOW') return void setImmediate(next);
    if (command.toString() !== 'DATA') return void next();
    const chunks: Buffer[] = [];
    stream
      .startDataMode()
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .on('end', () => {
        events.push(`message ${Buffer.concat(chunks).toString('latin1')}`);
        setImmediate(() => stream.continue());
      });
    next();
  };
  for (const piece of pieces) await new Promise<unknown>((resolve) => stream.write(piece, resolve));
  return events;
}

const token = fc.constantFrom(
  '\r\n',
  '\r\n',
  '\r',
  '\n',
  '.',
  '..',
  'DATA\r\n',
  'SLOW\r\n',
  '\r\n.\r\n',
  'x',
  'NOOP\r\n',
  'y'.repeat(30),
);
const bytes = fc.array(token, { maxLength: 30 }).map((parts) => Buffer.from(parts.join('')));

function cut(whole: Buffer, sizes: number[]): Buffer[] {
  const pieces: Buffer[] = [];
  let at = 0;
  for (const size of sizes) {
    if (at >= whole.length) break;
    pieces.push(whole.subarray(at, at + size));
    at += size;
  }
  return at < whole.length ? [...pieces, whole.subarray(at)] : pieces;
}

test('a stream that is cut into pieces anywhere means the same', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      bytes,
      fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 200 }),
      async (whole, sizes) => {
        t.deepEqual(await meaningOf(cut(whole, sizes)), await meaningOf([whole]));
      },
    ),
    { numRuns: runs(500) },
  );
});

test('no message has a bare CR or LF in it, and none ends at one', async (t) => {
  await fc.assert(
    fc.asyncProperty(bytes, async (whole) => {
      for (const event of await meaningOf([whole])) t.notRegex(event, /\r(?!\n)|(?<!\r)\n/);
    }),
    { numRuns: runs(500) },
  );
});

test('two messages in one piece are two messages, and what follows them is served', async (t) => {
  const message = 'DATA\r\nx\r\n.\r\n';
  const events = await meaningOf([Buffer.from(`${message}${message}NOOP\r\n`)]);
  t.deepEqual(events, ['command DATA', 'message x\r\n', 'command DATA', 'message x\r\n', 'command NOOP']);
});

test('input behind a command that ends its group is a fault, before the command means anything', async (t) => {
  t.deepEqual(await meaningOf([Buffer.from('ONE\r\nLAST\r\nTWO\r\n')]), ['command ONE', 'fault pipelining']);
  t.deepEqual(await meaningOf([Buffer.from('LAST\r\n'), Buffer.from('TWO\r\n')]), [
    'command LAST',
    'command TWO',
  ]);
});

test('many commands in one piece do not exhaust the stack', async (t) => {
  t.is((await meaningOf([Buffer.from('NOOP\r\n'.repeat(50_000))])).length, 50_000);
});

test.serial('a message of lines that begin with dots is read in little time', async (t) => {
  const stuffed = Buffer.from(`DATA\r\n${'..\r\n'.repeat(500_000)}.\r\n`);
  await costsAtMost(t, 1_000, async () => {
    const [, message] = await meaningOf([stuffed], stuffed.length);
    t.is(message, `message ${'.\r\n'.repeat(500_000)}`);
  });
});

test('a dot before other text stays, and only a dot alone ends the message', async (t) => {
  const lines = ['.x', '..x', '. ', '..', 'x.', '...'];
  const events = await meaningOf([Buffer.from(`DATA\r\n${lines.join('\r\n')}\r\n.\r\n`)]);
  t.deepEqual(events, ['command DATA', 'message .x\r\n.x\r\n. \r\n.\r\nx.\r\n..\r\n']);
});
