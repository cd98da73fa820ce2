/**
 * `node scripts/nodes.ts`: several Postern processes on one PostgreSQL, each killed at random times under load and started again.
 * Nothing may be lost or counted wrongly: see test/lab/load/reconciliation.ts; and limits and credits must be exact.
 * Do not run it at midnight UTC, when the daily limit starts again. Exits 0 if all of that holds, 1 if not.
 *
 *   --nodes 3 --senders 4     number of nodes; concurrent calls to each, for each organization
 *   --mails 20000             half is the daily limit of one organization, half the credits of another
 *   --per-second 5            the limit of a third organization
 *   --longest 15              a node lives for up to this many seconds, and is down for up to a quarter of that
 *   --patience 600 --abandon  seconds until the queue must be empty; the last node stays down in the end
 *   --set NAME=VALUE, --json  a Postern setting, may be repeated; print all results as JSON
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { conclude } from '#lab/load/conclude.ts';
import { progress, tableOf } from '#lab/load/figures.ts';
import { type Answers, sendUntilStopped } from '#lab/load/load.ts';
import { faultsOfWindows, recordWindows, type Windows, windowsOf } from '#lab/load/rate-windows.ts';
import { type Audit, auditRows, faultsOf } from '#lab/load/reconciliation.ts';
import { readOptions, runScript, type Stage, settingsOf } from '#lab/load/stage.ts';
import { type Cluster, countOf, startCluster, type Tenant } from '#lab/scenes/cluster.ts';
import type { PosternProcess } from '#lab/scenes/process.ts';

const args = readOptions('node scripts/nodes.ts [--nodes N] [--mails N] … (see its header)', {
  nodes: { type: 'string', default: '3' },
  mails: { type: 'string', default: '20000' },
  'per-second': { type: 'string', default: '5' },
  senders: { type: 'string', default: '4' },
  longest: { type: 'string', default: '15' },
  patience: { type: 'string', default: '600' },
  abandon: { type: 'boolean', default: false },
  set: { type: 'string', multiple: true, default: [] },
  json: { type: 'boolean', default: false },
});
const senders = Number(args.senders);
const perSecond = Number(args['per-second']);
const longestMs = 1000 * Number(args.longest);
const perDay = Math.floor(Number(args.mails) / 2);
const credits = Number(args.mails) - perDay;

/** An organization's credits or limit, and how many of its mails were accepted. */
interface Taken {
  limit: number;
  accepted: number;
}

interface Run extends Audit {
  kills: number;
  day: Taken;
  credits: Taken & { left: number };
  seconds: Windows;
  refused: number;
  unanswered: number;
  tookSeconds: number;
  drainSeconds: number;
}

/** The sending organizations; a name is part of the recipients of each. */
interface Sender extends Tenant {
  name: string;
  parallel: number;
}

async function run(stage: Stage): Promise<Run> {
  const cluster = await startCluster(stage, settingsOf(args.set));
  const { db } = cluster;
  const day = await cluster.addTenant({ limits: { emailsPerDay: perDay } });
  const wallet = Math.floor(credits / 3);
  const paid = await cluster.addTenant({ quota: credits - wallet, wallet });
  const slow = await cluster.addTenant({ limits: { requestsPerSecond: perSecond } });
  await recordWindows(db, slow.orgId);
  const everybody: Sender[] = [
    { ...day, name: 'day', parallel: senders },
    { ...paid, name: 'paid', parallel: senders },
    { ...slow, name: 'slow', parallel: 1 },
  ];
  const acceptedOf = ({ orgId }: Tenant) => countOf(db, (rows) => rows.where({ org_id: orgId }));

  const answers: Answers = new Map();
  const over = new AbortController();
  const begun = performance.now();
  const names = Array.from({ length: Number(args.nodes) }, (_, index) => `node${index}`);
  const lives = names.map((name) => live(name, { stage, cluster, everybody, answers }, over.signal));
  const ending = Promise.all(lives);
  // A node that does not start is reported at once.
  await Promise.race([reached(async () => [await acceptedOf(day), await acceptedOf(paid)]), ending]);
  over.abort();
  const tookSeconds = (performance.now() - begun) / 1000;
  const ended = await ending;
  const survivors = ended.flatMap(({ last }, index) =>
    args.abandon && index === names.length - 1 ? [] : [last],
  );
  const nodes = await Promise.all(survivors.map((launch) => launch()));
  const drainBegun = performance.now();
  await cluster.queueEmpty(Number(args.patience) * 1000);
  const drainSeconds = (performance.now() - drainBegun) / 1000;
  for (const postern of nodes) await postern.end('SIGTERM');
  const org = await db('organizations')
    .where({ id: paid.orgId })
    .first('wallet', 'quota_limit', 'quota_used');
  return {
    kills: ended.reduce((sum, { kills }) => sum + kills, 0),
    day: { limit: perDay, accepted: await acceptedOf(day) },
    credits: {
      limit: credits,
      accepted: await acceptedOf(paid),
      left: org.wallet + org.quota_limit - org.quota_used,
    },
    seconds: await windowsOf(db, slow.orgId),
    refused: [...answers].reduce((sum, [status, list]) => (status > 200 ? sum + list.length : sum), 0),
    unanswered: answers.get(0)?.length ?? 0,
    tookSeconds,
    drainSeconds,
    ...(await cluster.compare(answers.get(200) ?? [])),
  };
}

interface Setting {
  stage: Stage;
  cluster: Cluster;
  everybody: Sender[];
  answers: Answers;
}

/** Runs one node under load and kills it, again and again; returns a function that starts it for the last time. */
async function live(
  node: string,
  { stage, cluster, everybody, answers }: Setting,
  over: AbortSignal,
): Promise<{ kills: number; last: () => Promise<PosternProcess> }> {
  const launch = () => cluster.launch(node);
  let kills = 0;
  for (; !over.aborted; kills++) {
    const postern = await launch();
    const gone = new AbortController();
    const pouring = everybody.map(({ name, key, parallel }) => {
      const target = { name: `${name}${node}l${kills}`, key, url: postern.url, parallel };
      return sendUntilStopped({ ...target, stopped: gone.signal }, answers);
    });
    await sleep(Math.random() * longestMs, null, { signal: stage.interrupted });
    await postern.end('SIGKILL');
    gone.abort();
    await Promise.all(pouring);
    await sleep((Math.random() * longestMs) / 4, null, { signal: stage.interrupted });
  }
  return { kills, last: launch };
}

/** Resolves when everything allowed was accepted and each node had time to accept more by mistake. */
async function reached(accepted: () => Promise<number[]>): Promise<void> {
  for (;;) {
    const [ofDay, ofCredits] = (await accepted()) as [number, number];
    progress(`accepted: ${ofDay} of ${perDay} a day, ${ofCredits} of ${credits} credits`);
    if (ofDay >= perDay && ofCredits >= credits) break;
    await sleep(5000);
  }
  await sleep(longestMs);
}

function print(one: Run): void {
  const { day, credits: paid, seconds } = one;
  const rows: [string, string | number][] = [
    ['nodes, and how often they were killed', `${args.nodes}, ${one.kills}`],
    ['the limit of the day, and accepted', `${day.limit}, ${day.accepted}`],
    ['the credits, accepted, and left', `${paid.limit}, ${paid.accepted}, ${paid.left}`],
    ['the limit of a second, and the most of any', `${perSecond}, ${seconds.max}`],
    ['seconds with requests, of these full', `${seconds.count}, ${seconds.full}`],
    ['answered otherwise, not answered', `${one.refused}, ${one.unanswered}`],
    ...auditRows.map(([what, cell]): [string, string | number] => [what, cell(one)]),
    [
      'it took',
      `${one.tookSeconds.toFixed(0)} s, and ${one.drainSeconds.toFixed(1)} s until the queue was empty`,
    ],
  ];
  console.log(tableOf([], rows));
}

function faultsIn(one: Run): string[] {
  const { day, credits: paid, seconds } = one;
  const more: string[] = [];
  if (day.accepted !== day.limit)
    more.push(`${day.accepted} were accepted, the limit of the day is ${perDay}`);
  if (paid.accepted !== paid.limit) more.push(`${paid.accepted} were accepted for ${paid.limit} credits`);
  if (paid.left !== 0) more.push(`${paid.left} credits are left`);
  return [...faultsOf(one), ...more, ...faultsOfWindows(seconds, perSecond)];
}

let result: Run | undefined;
const faults = await runScript('nodes', async (stage) => {
  result = await run(stage);
  return faultsIn(result);
});
conclude({
  faults,
  json: args.json && { run: result },
  print: () => result && print(result),
});
