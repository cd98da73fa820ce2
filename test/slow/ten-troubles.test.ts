/** `postern status` with ten destinations at once, nine of them in trouble, and then without a server. */
import { stripVTControlCharacters } from 'node:util';
import test from 'ava';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { cliOf } from '#lab/cli.ts';
import { manualClock } from '#lab/clock.ts';
import { startTenTroubles } from '#lab/scenes/ten-troubles.ts';
import { until } from '#lab/until.ts';

const minute = 60_000;

/** By destination: the cause that `status` must name, what the entry says, and the beginning of the next command. */
const expected: Record<string, [cause: string, says: RegExp, command: string]> = {
  'mx1.invalid': ['tls_failing', /certificate has expired/, 'postern queue trace mx1.invalid'],
  'mx3.invalid': ['slow', /waiting/, 'postern queue trace mx3.invalid'],
  'mx4.invalid': ['greylisting', /Greylisted/, 'postern queue list --destination mx4.invalid'],
  'mx5.invalid': ['throttled', /unusual rate/, 'postern queue '],
  'mx6.invalid': ['blocklisted', /zen\.spamhaus\.org/, 'postern doctor'],
  'mx7.invalid': ['refusing', /accepts no mail from your network/, 'postern queue trace mx7.invalid'],
  'mx8.invalid': ['hanging', /greeting/, 'postern queue trace mx8.invalid'],
  'mx.gone.invalid': ['unreachable', /ECONNREFUSED|refused/, 'postern queue trace mx.gone.invalid'],
  'servfail.invalid': ['dns_failing', /SERVFAIL|server failure/i, 'dig servfail.invalid MX'],
};

interface Entry {
  cause: string;
  subject: string;
  since: string;
  figure: string;
  reply: string | null;
  advice: string;
  command: string;
}

test('ten troubles at once: each is soon named, with its cause and the next command', async (t) => {
  const world = await startTenTroubles(t);
  const { cli, onTerminalOf } = cliOf(t, world);
  const status = async () => {
    const { stdout, code } = await cli('status --json');
    const document = JSON.parse(stdout.toString()) as { needs: Entry[]; verdict: string };
    return { ...document, code };
  };
  let last: Entry[] = [];
  await until(
    async () => {
      last = (await status()).needs;
      return Object.entries(expected).every(([subject, [cause]]) =>
        last.some((need) => need.subject === subject && need.cause === cause),
      );
    },
    { what: () => `every cause in ${JSON.stringify(last, null, 1)}` },
  );
  const seen = await status();
  t.is(seen.verdict, 'needs_attention');
  t.is(seen.code, 1);
  for (const [subject, [cause, says, command]] of Object.entries(expected)) {
    const need = seen.needs.find((one) => one.subject === subject)!;
    t.is(need.cause, cause, subject);
    t.regex(`${need.reply} ${need.figure}`, says, subject);
    t.true(need.command.startsWith(command), `${subject}: ${need.command}`);
    if (cause === 'tls_failing') t.regex(need.advice, /^The host’s certificate has expired, and /);
    t.true(Date.parse(need.since) <= Date.now(), subject);
  }
  t.false(
    seen.needs.some(({ subject }) => subject === 'mx2.invalid'),
    'nothing is wrong with the good one',
  );
  for (const [columns, rows] of [
    [80, 24],
    [120, 40],
  ] as const) {
    let screen = '';
    const showsAll = async () => {
      screen = (await onTerminalOf(columns, rows)('status')).stdout.toString();
      return Object.keys(expected).every((subject) => screen.includes(subject));
    };
    // A busy machine may have an eleventh for a moment.
    await until(showsAll, { what: () => `each of the ten in\n${screen}` });
    if (process.env.SHOW_STATUS) console.log(`${columns} by ${rows}\n${screen}`);
    const lines = stripVTControlCharacters(screen).trimEnd().split('\n');
    t.true(lines.length < rows, `${lines.length} lines at ${columns} by ${rows}`);
    for (const line of lines) t.true(line.length <= columns, line);
  }

  world.letGo();
  await world.stop();
  const stopped = await status();
  t.is(stopped.needs[0]!.cause, 'no_server');
  t.is(stopped.needs[0]!.command, 'systemctl enable --now postern');
});

interface Row {
  destination: string;
  condition: Entry & { text: string };
}

/** Those where nothing answers: the circuit opens, and mail is tried less and less often. */
const circuits = ['refusing', 'hanging', 'unreachable', 'dns_failing'];

test('after ten minutes each trouble has the cause that it began with, in every view', async (t) => {
  const clock = manualClock(Date.now());
  const world = await startTenTroubles(t, clock);
  const { cli, json } = cliOf(t, world, clock);
  const browser = createBrowser(world);
  await setUp(browser, world);
  const needs = async () => JSON.parse((await cli('status --json')).stdout.toString()).needs as Entry[];
  const lasting = Object.entries(expected).filter(([, [cause]]) => circuits.includes(cause));

  async function pass(ms: number): Promise<void> {
    for (const end = clock.now() + ms; clock.now() < end; ) {
      // The server looks at the queue only when something was committed.
      await world.db('organizations').update({ name: world.db.ref('name') });
      world.hasProgressed();
      await clock.advance(2_000);
      await clock.passUntil(() => world.hasProgressed(), { step: 100, what: 'another look at the queue' });
    }
  }

  let began: Entry[] = [];
  await clock.passUntil(
    async () => {
      began = await needs();
      const rows = await world.db('destinations').select('state');
      const open = rows.filter(({ state }) => JSON.parse(state).circuit !== null);
      return open.length >= lasting.length;
    },
    { what: () => `the circuits to be open, by now ${JSON.stringify(began, null, 1)}` },
  );
  began = await needs();
  await pass(10 * minute);

  const now = await needs();
  const [summary, top] = [await json('queue summary'), await json('top --once')];
  const page = (await browser.get('/dashboard/queue')).text;
  for (const [subject, [cause, says, command]] of lasting) {
    const need = now.find((one) => one.subject === subject);
    t.is(need?.cause, cause, subject);
    t.is(need?.since, began.find((one) => one.subject === subject)?.since, `${subject}: since it began`);
    t.regex(need!.reply!, says);
    t.true(need!.command.startsWith(command));
    const [row, line] = [summary, top.queue.destinations].map((rows: Row[]) =>
      rows.find(({ destination }) => destination === subject),
    );
    t.is(row?.condition.cause, cause, `${subject} in the summary`);
    t.is(row!.condition.since, need!.since);
    t.deepEqual(line?.condition, row!.condition, `${subject} in top`);
    const label = row!.condition.text.split(' since ')[0]!;
    t.regex(
      page,
      new RegExp(`${subject.replaceAll('.', '\\.')} ${label}`, 'i'),
      `${subject} on the page of the queue`,
    );
    const route = await world.db('routes').where({ destination: subject }).first('domain');
    const waiting = world.db('deliveries').whereIn('status', ['queued', 'deferred']);
    const { email_id } = await waiting.where({ domain: route.domain }).first();
    const [{ condition, why }] = (await json(`email why ${email_id}`)).recipients;
    t.is(condition.cause, cause, `${subject}: why`);
    t.regex(why, /Postern keeps trying/);
    const isMeasured = async () => {
      const metrics = await (await fetch(`${world.url()}/metrics`)).text();
      return metrics.includes(`destination="${subject}",cause="${cause}"`);
    };
    await world.clock.passUntil(isMeasured, { what: `${subject} in the metrics` });
  }
  if (process.env.SHOW_STATUS)
    console.log((await cliOf(t, world, clock).onTerminalOf(80, 24)('status')).stdout.toString());
  await world.stop();
});
