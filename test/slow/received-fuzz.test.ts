/**
 * Ten thousand strange mails over real sockets, and those of a directory that TEST_MAILS names: each is refused with a reply or
 * arrives as an event, none ends anything, and the bytes that are kept are those that were sent.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { runs } from '#lab/runs.ts';
import { startReceiving } from '#lab/scenes/receiving.ts';
import { strangeMail } from '#lab/strange-mails.ts';
import { listReceived, rawOf } from '#mail/received/rows/received-mails.ts';

const connections = 8;
/** This process is client and server; a full collection comes late. */
const maxGrowthMb = 400;

const corpus = process.env.TEST_MAILS;
const given = corpus ? readdirSync(corpus).map((name) => asSent(readFileSync(join(corpus, name)))) : [];
const mails = [
  ...Array.from({ length: runs(10_000) }, (_, number) => () => strangeMail(number)),
  ...given.map((raw) => () => raw),
];

/** Every line ends with CRLF, as after the listener, which takes each bare CR and LF for a line end. */
function asSent(raw: Buffer): Buffer {
  const text = raw.toString('latin1').replace(/\r\n?|\n/g, '\r\n');
  return Buffer.from(text.endsWith('\r\n') ? text : `${text}\r\n`, 'latin1');
}

test('strange mails are refused with a reply or arrive, byte for byte', async (t) => {
  t.timeout(1_800_000);
  const world = await startReceiving(t, {
    settings: { POSTERN_RECEIVED_PER_MINUTE: '1000000', POSTERN_RECEIVED_STORE: '10G' },
  });
  await world.route();
  const answers: string[] = [];
  const memory: number[] = [];
  let next = 0;
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const talk = await world.connect();
      while (next < mails.length) {
        const number = next++;
        answers[number] = await world.receives(mails[number]!(), { to: [`n${number}@x.invalid`], talk });
        if (number % 500 === 0) memory.push(process.memoryUsage.rss() / 2 ** 20);
      }
    }),
  );
  t.deepEqual(
    answers.filter((answer) => !/^(250|55\d) /.test(answer)),
    [],
  );
  const taken = answers.flatMap((answer, number) => (answer.startsWith('250') ? [number] : []));
  t.true(taken.length > mails.length * 0.95, `${taken.length} of ${mails.length}`);
  t.true(Math.max(...memory) - memory[0]! < maxGrowthMb, memory.map(Math.round).join(' '));

  const seen = new Set<number>();
  let unreadable = 0;
  for (let before: string | undefined; ; ) {
    const page = await listReceived(world.db, world.orgId, { limit: 100, before });
    for (const { id, recipients, summary, size } of page) {
      const number = Number(/^n(\d+)@/.exec(recipients[0]!)![1]);
      seen.add(number);
      if (!summary.isReadable) unreadable += 1;
      const sent = mails[number]!();
      const raw = (await rawOf(world.db, world.orgId, id))!;
      t.is(raw.length, size);
      if (!raw.subarray(-sent.length || raw.length).equals(sent))
        t.fail(`mail ${number} is not what was sent`);
    }
    before = page.at(-1)?.id;
    if (!before) break;
  }
  t.is(seen.size, taken.length);
  const events = await world.db('events').where({ type: 'email.received' }).count('* as count').first();
  t.is(Number(events!.count), taken.length, 'an event each');
  t.log(`memory in MB: ${memory.map(Math.round).join(' ')}`);
  t.log(`${taken.length} taken, ${answers.length - taken.length} refused, ${unreadable} not readable`);
});
