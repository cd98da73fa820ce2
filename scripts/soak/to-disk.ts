/**
 * The time from the sink's reply to the final dot until the outcome is on disk (test/lab/load/outcome-times.ts): a mail whose
 * outcome is not on disk when the server is killed is sent again. The server is started for each of two loads: full speed from
 * the start on, as before a kill, and 100 mails a second.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ms, quantile } from '#lab/load/figures.ts';
import { type Answers, recipients, sendAll, sendUntilStopped } from '#lab/load/load.ts';
import { type Where, watchOutcomes } from '#lab/load/outcome-times.ts';
import type { Stage } from '#lab/load/stage.ts';
import type { Sink } from '#lab/mx/sink.ts';
import type { PosternProcess } from '#lab/scenes/process.ts';
import { until } from '#lab/until.ts';

export interface ToDiskParts {
  where: Where;
  launch(): Promise<PosternProcess>;
  sink: Sink;
  key: string;
  /** The recipients are added. */
  answers: Answers;
  senders: number;
  seconds: number;
}

/** Milliseconds for each mail. */
export interface ToDisk {
  fullSpeed: number[];
  steady: number[];
}

const steadyPerSecond = 100;

type Send = (stage: Stage, url: string, parts: ToDiskParts) => Promise<void>;

const atFullSpeed: Send = async (stage, url, { key, answers, senders, seconds }) => {
  const stopped = new AbortController();
  const target = { name: 'full', url, key, parallel: senders, stopped: stopped.signal };
  const sending = sendUntilStopped(target, answers);
  await sleep(seconds * 1000, undefined, { signal: stage.interrupted }).finally(() => stopped.abort());
  await sending;
};

const steadily: Send = async ({ interrupted }, url, { key, answers, seconds }) => {
  const to = recipients('there.invalid', seconds * steadyPerSecond, 'steady');
  await sendAll({ url, key, to, intervalMs: 1000 / steadyPerSecond, interrupted });
  answers.set(200, [...answeredIn(answers), ...to]);
};

export async function measureToDisk(stage: Stage, parts: ToDiskParts): Promise<ToDisk> {
  const measure = (send: Send) => stage.nested((scene) => timesToDisk(scene, parts, send));
  return { fullSpeed: await measure(atFullSpeed), steady: await measure(steadily) };
}

async function timesToDisk(stage: Stage, parts: ToDiskParts, send: Send): Promise<number[]> {
  const { where, launch, sink, answers } = parts;
  const postern = await stage.start(launch(), (it) => it.end('SIGKILL'));
  const outcomes = await stage.start(watchOutcomes(where), (it) => it.stop());
  const before = answeredIn(answers).length;
  await send(stage, postern.url, parts);
  const sent = answeredIn(answers).slice(before);
  const seenAt = await until(
    async () => {
      const seen = await outcomes.read();
      return sent.every((to) => seen.has(to)) && seen;
    },
    { what: 'all outcomes' },
  );
  await postern.end('SIGTERM');
  const repliedAt = new Map((await sink.records()).map(({ to, at }) => [to, at]));
  return sent.map((to) => seenAt.get(to)! - repliedAt.get(to)!);
}

export const answeredIn = (answers: Answers) => answers.get(200) ?? [];

/** The distribution, as a cell of a table. */
export function spreadOf(times: number[]): string {
  return [...[0.5, 0.95, 0.99].map((share) => quantile(times, share)), Math.max(...times)]
    .map(ms)
    .join(' / ');
}
