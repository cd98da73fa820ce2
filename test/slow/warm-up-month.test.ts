/**
 * A month of mail from two new addresses, on a clock that is set, to exchangers that throttle by the age and the volume of an
 * address: each day of the plan is kept within 5 %, the plan slows where it is throttled, and nothing is lost or expires.
 */
import test from 'ava';
import { kinds } from '#lab/database/databases.ts';
import type { Mx } from '#lab/mx/mx.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { allowanceOf, dayMs } from '#mail/deliver/warm-up-plan.ts';
import { readWarmUps } from '#mail/record/rows/warm-up-rows.ts';

/** The plan is the same code on both, and PostgreSQL takes longer. */
const daysOn = { sqlite: 30, postgres: 10 };
const perSend = 10;
const hourMs = 3_600_000;
const stepMs = 3 * hourMs;
const sources = ['127.0.0.51', '127.0.0.52'];

/** What a day brings, in parts of what the plan allows at its beginning: most days less, some far more. */
const load = (day: number) => [1.1, 0.8, 1.5, 0.4, 1, 1.6, 0.3][day % 7]!;

for (const kind of kinds) {
  test(`${kind}: each day keeps to the plan, and nothing expires because of it`, async (t) => {
    const days = daysOn[kind];
    const world = await startWorld(t, {
      database: kind,
      exchangers: [{}, {}],
      zone: {
        'gmail.invalid': { MX: ['10 mx.google.com'] },
        'mx.google.com': { A: ['127.0.0.2'] },
        'other.invalid': { MX: ['10 mx2.invalid'] },
      },
      settings: { POSTERN_MTA_SOURCES: sources.join(' ') },
    });
    const { clock, db, mx } = world;
    const begunAt = clock.now();
    const today = () => Math.floor((clock.now() - begunAt) / dayMs);
    /** Times of accepted mails, by source and receivers. */
    const accepted = new Map<string, number[]>();
    const acceptedOf = (source: string, receivers: string) => {
      const times = accepted.get(`${source} ${receivers}`) ?? [];
      accepted.set(`${source} ${receivers}`, times);
      return times;
    };
    let throttled = 0;
    const watch = (one: Mx, receivers: string, limitOf: (day: number) => number) => {
      const isFull = (source: string) => {
        const counted = acceptedOf(source, receivers).at(-limitOf(today()));
        return counted !== undefined && counted > clock.now() - dayMs;
      };
      one.script = {
        mail: ({ session }) => {
          if (!isFull(session.from)) return undefined;
          throttled += 1;
          return '421 4.7.28 Our system has detected an unusual rate of mail from your address';
        },
        dot: ({ session }) => {
          acceptedOf(session.from, receivers).push(clock.now());
          return undefined;
        },
      };
    };
    // Gmail lets an address do a little more each day, far less than the plan would like; the others let it do what it likes.
    watch(mx[0]!, 'Gmail', (day) => 110 + 4 * day);
    watch(mx[1]!, 'others', () => 400);

    /** What is due has been begun, and what has been begun has ended. */
    const pass = async (time: '2s') => {
      await clock.advance(time);
      await clock.passUntil(async () => (await db('deliveries').where({ status: 'sending' })).length === 0, {
        step: 100,
      });
    };

    const plans = new Map<string, { from: number; allowance: number }>();
    let sent = 0;
    let [gmail, others] = [0, 0];
    while (today() < days) {
      const plan = await readWarmUps(db);
      for (const { address, receivers, day, step, beganAt } of plan)
        plans.set(`${address} ${receivers} ${day}`, { from: beganAt, allowance: allowanceOf(step) });
      if ((clock.now() - begunAt) % dayMs < stepMs) {
        const room = (group: string) => {
          const steps = plan
            .filter(({ receivers }) => receivers === group)
            .map(({ step }) => allowanceOf(step));
          return steps.reduce((sum, one) => sum + one, 0) || 200;
        };
        gmail = Math.min(room('Gmail'), 240) * load(today());
        others = Math.min(room('others'), 500) * load(today());
      }
      for (const [domain, many] of [
        ['gmail.invalid', gmail],
        ['other.invalid', others],
      ] as const) {
        for (let left = Math.round((many * stepMs) / dayMs); left > 0; left -= perSend) {
          const to = Array.from({ length: Math.min(left, perSend) }, (_, n) => `n${n}@${domain}`);
          const { status } = await world.send({ to, subject: `${sent}` });
          t.is(status, 200);
          sent += to.length;
        }
      }
      for (let hour = 0; hour < stepMs / hourMs; hour++) {
        await pass('2s');
        await clock.jump(hourMs - 2_000);
      }
    }
    // What still waits has its time.
    for (let hour = 0; hour < 48; hour++) {
      await clock.jump(hourMs);
      await pass('2s');
    }

    const rows = await db('deliveries').groupBy('status').select('status').count('* as count');
    const ended = Object.fromEntries(rows.map(({ status, count }) => [status, Number(count)]));
    t.deepEqual(ended, { delivered: sent });
    t.true(throttled > 0);
    let closest = 0;
    for (const [name, { from, allowance }] of plans) {
      const [source, receivers] = name.split(' ') as [string, string];
      const day = acceptedOf(source, receivers).filter((at) => at >= from && at < from + dayMs);
      t.true(day.length <= 1.05 * allowance, `${name}: ${day.length} of ${allowance}`);
      closest = Math.max(closest, day.length / allowance);
    }
    t.true(closest > 0.95, `${closest} of a day's allowance at most`);
    const last = await readWarmUps(db);
    const stepsOf = (group: string) =>
      last.filter(({ receivers }) => receivers === group).map(({ step }) => step);
    t.log(
      `${sent} mails, ${throttled} throttled; steps: Gmail ${stepsOf('Gmail')}, others ${stepsOf('others')}; days ${last.map(({ day }) => day)}`,
    );
    t.true(Math.max(...stepsOf('Gmail')) < Math.min(...stepsOf('others')));
  });
}
