/**
 * Item 10: every route of the server, and submission, with what is cheap to send and can be dear to read
 * (test/lab/hostile-walk.ts), of 6 MB, and of what fits the limit of a text. It takes some minutes on a quiet machine.
 */
import { createSubmitter, hostileMails } from '#lab/hostile-mails.ts';
import { routesOfServer, type Target } from '#lab/hostile-walk.ts';
import { inWords, newTally, recordReply, type Tally, targetOf, walkRoute } from '#lab/walk-target.ts';
import { type Attack, type Verdict, verdict } from './attack.ts';
import { orgIdOf, type Scene } from './scene.ts';

const mega = 1_000_000;
const bytes = { value: 6 * mega, near: 250_000 };
const mailBytes = [90_000, 6 * mega];
/** One of so many messages of 6 MB is submitted: each that is taken is stored. */
const oneOfLarge = 8;

/** When which trial began, so that the longest stall can be told. */
type Diary = { at: number; what: string }[];

async function walkService(scene: Scene, service: string): Promise<Verdict> {
  const key = await scene.addTenant();
  const orgId = await orgIdOf(scene.db, key);
  const browser = await scene.operator();
  const target: Target = await targetOf({ url: scene.url, key, orgId, browser, bytes, oneOf: 1 });
  const tally = newTally();
  const diary: Diary = [];
  const from = Date.now();
  for (const route of routesOfServer().filter((one) => one.service === service)) {
    await walkRoute(route, target, tally, async ({ what }, make) => {
      if (scene.hasEnded()) return;
      diary.push({ at: Date.now(), what });
      await make();
    });
  }
  return told(scene, tally, diary, from);
}

async function walkSubmission(scene: Scene): Promise<Verdict> {
  const key = await scene.addTenant();
  const tally = newTally();
  const diary: Diary = [];
  const from = Date.now();
  const submitter = createSubmitter(scene.ports.submission, key);
  for (const size of mailBytes) {
    for (const mail of hostileMails(size, size === mega * 6 ? oneOfLarge : 1)) {
      if (scene.hasEnded()) break;
      diary.push({ at: Date.now(), what: mail.what });
      const reply = await submitter.submit(mail);
      recordReply(tally, mail.what, reply);
    }
  }
  submitter.close();
  return told(scene, tally, diary, from);
}

async function told({ bystander }: Scene, tally: Tally, diary: Diary, from: number): Promise<Verdict> {
  const { probes, sends } = await bystander.observed(from, Date.now());
  const slowest = (of: typeof probes) => {
    const { at, ms } = of.reduce((most, one) => (one.ms > most.ms ? one : most));
    return `${ms} ms: ${diary.findLast((one) => one.at <= at + ms / 2)?.what}`;
  };
  const { faults } = tally;
  return verdict(
    `${inWords(tally)}; longest stall ${slowest(probes)}; slowest send of others ${slowest(sends)}`,
    [tally.trials > 0, 'there was nothing to walk'],
    [faults.length === 0, `${faults.length} answers are wrong; ${faults[0]}`],
  );
}

const common = { item: 10, maxStallMs: 200, timeoutMs: 20 * 60_000 };

export const walk: Attack[] = [
  ...[...new Set(routesOfServer().map(({ service }) => service))].map((service) => ({
    ...common,
    name: `the walk over all routes: ${service}`,
    run: (scene: Scene) => walkService(scene, service),
  })),
  { ...common, name: 'hostile messages by submission', run: walkSubmission },
];
