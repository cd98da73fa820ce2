/**
 * A destination that throttles for an hour, in `npm test` for ten minutes: every view says so, since when, and as fast as
 * the exchanger saw it.
 */
import test from 'ava';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { cliOf } from '#lab/cli.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const minute = 60_000;
const stepMs = 3_000;
/** What the exchanger accepts in each minute of the clock. */
const perMinute = 10;
const lengthMinutes = process.env.TEST_SLOW ? 60 : 10;
const sent = 15 * lengthMinutes;

interface Pace {
  since: string;
  reply: string;
  perMinute: number;
  drainSeconds: number;
}

test('a throttled destination over time: all views agree with what the exchanger saw', async (t) => {
  const world = await startWorld(t, { exchangers: [{}] });
  const { clock } = world;
  const mx = world.mx[0]!;
  /** When the exchanger accepted each mail, and first asked us to slow down. */
  const accepted: number[] = [];
  let [current, count] = [0, 0];
  let throttledAt = 0;
  mx.script = {
    mail: () => {
      const now = Math.floor(clock.now() / minute);
      if (now !== current) [current, count] = [now, 0];
      count += 1;
      if (count <= perMinute) return;
      throttledAt ||= clock.now();
      return '421 4.7.28 Our system has detected an unusual rate of mail';
    },
    dot: () => void accepted.push(clock.now()),
  };
  const browser = createBrowser(world);
  await setUp(browser, world);
  const mails = Array.from({ length: sent }, (_, at) => ({ to: `${at}@there.invalid`, subject: `${at}` }));
  // All at once would be more connections than the machine opens in time.
  for (let at = 0; at < sent; at += 50)
    await Promise.all(mails.slice(at, at + 50).map((mail) => world.send(mail)));
  const { json, cli } = cliOf(t, world, clock);

  /** Lets the server keep up with the clock: sockets and the database take real time. */
  async function pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += stepMs) {
      // The server looks at the queue only when something was committed.
      await world.db('organizations').update({ name: world.db.ref('name') });
      world.hasProgressed();
      await clock.advance(stepMs);
      await until(() => world.hasProgressed(), { what: 'another look at the queue' });
    }
  }

  /** Until the server has recorded, and then published, what the exchanger has accepted. */
  async function catchUp(): Promise<void> {
    const delivered = async () => {
      const row = await world.db('deliveries').where({ status: 'delivered' }).count('* as count').first();
      return Number(row!.count) === accepted.length;
    };
    for (let second = 0; second < 3; second++) {
      await clock.advance(1000);
      await until(delivered, { what: 'all accepted mail to be recorded' });
    }
  }

  for (let at = 10; at <= lengthMinutes; at += 10) {
    await pass(10 * minute);
    await catchUp();
    await agree(at);
  }

  /** Each view, against the exchanger's own books. */
  async function agree(at: number): Promise<void> {
    const status = JSON.parse((await cli('status --json')).stdout.toString());
    const need = status.needs.find(({ subject }: { subject: string }) => subject === 'mx1.invalid');
    t.is(need?.cause, 'throttled', `after ${at} minutes: ${JSON.stringify(status)}`);
    const now = clock.now();
    t.log(at, need.figure, accepted.length);
    // The engine may hear of it a step later than the exchanger says it.
    t.true(Math.abs(Date.parse(need.since) - throttledAt) <= stepMs);
    t.regex(need.reply, /^421 4\.7\.28/);
    const window = accepted.filter((time) => time > now - 15 * minute && time > throttledAt);
    const minutes = Math.min(15 * minute, now - throttledAt) / minute;
    near(need.perMinute, window.length / minutes, 'rate');
    near(need.waiting, sent - accepted.length, 'waiting');
    near(need.drainSeconds, (need.waiting / need.perMinute) * 60, 'time to drain');

    const same = (pace: Pace | null, where: string) => {
      t.truthy(pace, where);
      t.is(pace!.since, need.since, where);
      near(pace!.perMinute, need.perMinute, where);
      near(pace!.drainSeconds, need.drainSeconds, where);
    };
    // The server may still be publishing what it has measured.
    const summary = await until(
      async () => {
        const [one] = await json('queue summary');
        return isNear(one.condition?.drainSeconds ?? 0, need.drainSeconds) && one;
      },
      { what: 'the queue summary to agree with the status' },
    );
    same(summary.condition, 'queue summary');
    t.regex(summary.condition.text, /^throttled since /);
    const top = await json('top --once');
    same(top.queue.destinations[0].condition, 'top');
    same(
      top.status.needs.find(({ cause }: { cause: string }) => cause === 'throttled'),
      'the head of top',
    );
    const { email_id } = await world.db('deliveries').whereIn('status', ['queued', 'deferred']).first();
    const [{ why }] = (await json(`email why ${email_id}`)).recipients;
    const rateIn = (text: string) => Number(/([\d.]+) a minute/.exec(text)?.[1]);
    t.regex(why, /has been asking us since .* to slow down \("421 4\.7\.28/);
    near(rateIn(why), need.perMinute, 'why');

    await clock.advance(0);
    const { text } = await browser.get('/dashboard/organizations');
    t.regex(text, /Throttled: mx1\.invalid/);
    near(rateIn(text), need.perMinute, 'the dashboard');
    const overview = await browser.get(`/dashboard/o/${world.orgId}`);
    t.regex(overview.text, /Throttled: mx1\.invalid (for .{1,20} )?Asks us to slow down/);
    t.notRegex(overview.text, /a minute/, 'the rate is that of all organizations');
    t.regex((await browser.get('/dashboard/queue')).text, /mx1\.invalid Throttled throttled since/);
    if (at === 10 || at === lengthMinutes) await metricsAgree(need);
  }

  interface Need extends Pace {
    waiting: number;
  }

  /** The database is read for a scrape at most every five seconds. */
  async function metricsAgree(need: Need): Promise<void> {
    let text = '';
    const value = (name: string) =>
      Number(new RegExp(`^postern_${name}(?:{[^}]*})? (.*)$`, 'm').exec(text)?.[1]);
    await until(async () => {
      text = await (await fetch(`${world.url()}/metrics`)).text();
      return value('queue_measured_age_seconds') < 30 && value('destination_waiting') > 0;
    });
    near(value('destination_accepted_per_minute'), need.perMinute, 'metrics');
    near(value('destination_waiting'), need.waiting, 'metrics');
    near(value('destination_drain_seconds'), need.drainSeconds, 'metrics');
    t.is(Math.round(value('destination_trouble_since_seconds') * 1000), Date.parse(need.since));
    t.is(value('destinations_busy'), 1);
  }

  /** What passes in bursts has another rate in a window that begins some seconds later. */
  function isNear(value: number, wanted: number): boolean {
    return Math.abs(value - wanted) <= wanted * 0.1;
  }

  function near(value: number, wanted: number, what: string): void {
    t.true(isNear(value, wanted), `${what}: ${value}, not ${wanted}`);
  }
});
