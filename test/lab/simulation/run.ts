/**
 * One run of a seed: builds the scene, lets the plan happen, checks the invariants each simulated minute, and at the end, when all
 * faults are over and the service has had time to settle everything, those of the end.
 */

import { hash } from 'node:crypto';
import { Mailing } from './actors/mails.ts';
import { faults } from './faults.ts';
import { checkAtEnd, checkNow, type Failure, Invariants } from './invariants.ts';
import { scheduler, world } from './machine/scheduler.ts';
import { orders } from './orders.ts';
import type { PlanItem } from './plan.ts';
import { Random } from './random.ts';
import { Scene, type SceneParts } from './scene.ts';

export interface Result {
  failure: Failure | null;
  /** The lines that tell what happened to the mail concerned. */
  story: string[];
  figures: {
    hours: number;
    events: number;
    /** Of the order and the times of all events, and of all that the actors saw. */
    fingerprint: string;
    mails: number;
    copies: number;
    posts: number;
    faults: number;
  };
}

const minute = 60_000;
/** A check reads all mails, and takes about as long as five events for each. Many mails are checked more rarely. */
const eventsForMail = 50;
const fewMails = 200;
/** Events between two looks at the invariants: several times what was measured, whatever the mails and the faults. */
const maxEvents = { inAll: 300_000, ofMail: 1_000 };
/** After the last fault: the maximum age of mail, and the wait of a webhook. */
const settlingMs = 6 * 60 * minute;

export async function run(seed: string, plan: PlanItem[], parts: SceneParts): Promise<Result> {
  const scene = new Scene(new Random(`${seed}/scene`), parts);
  const invariants = new Invariants(scene);
  const onRejection = (error: unknown) => invariants.noteCrash(scheduler.current, error);
  try {
    scheduler.onCrash = (machine, error) => invariants.noteCrash(machine, error);
    process.on('unhandledRejection', onRejection);
    await scene.open();
    const begin = scheduler.now;
    const ends = schedulePlan(scene, plan, new Random(`${seed}/plan`), begin, invariants);
    const lastAt = Math.max(begin + (plan.at(-1)?.at ?? 0), ...ends.times());
    await watch(scene, invariants, lastAt + minute, () => false);
    ends.endAll();
    await watch(scene, invariants, scheduler.now + settlingMs, () => invariants.isSettled());
    checkAtEnd(invariants);
    return resultOf(scene, invariants);
  } finally {
    process.off('unhandledRejection', onRejection);
    scene.close();
  }
}

async function watch(
  scene: Scene,
  invariants: Invariants,
  until: number,
  isOver: () => boolean,
): Promise<void> {
  let checkedAt = Number.NEGATIVE_INFINITY;
  while (scheduler.now < until && !invariants.failure) {
    const step = invariants.isQuiet ? 30 * minute : minute;
    const max = maxEvents.inAll + maxEvents.ofMail * scene.book.mails.length;
    const begun = scheduler.count;
    const isEndless = () => scheduler.count > begun + max;
    const isCut = () => invariants.failure !== null || isEndless();
    await scheduler.runUntil(Math.min(scheduler.now + step, until), isCut);
    if (isEndless()) invariants.noteEndless(max);
    const isDue = scheduler.count - checkedAt >= eventsForMail * (scene.book.mails.length - fewMails);
    if (!isDue && scheduler.now < until) continue;
    checkedAt = scheduler.count;
    await scene.loadRows();
    checkNow(invariants, await scene.status());
    if (isOver()) return;
  }
}

function schedulePlan(scene: Scene, plan: PlanItem[], random: Random, begin: number, invariants: Invariants) {
  const mailing = new Mailing(scene);
  const open = new Set<() => void>();
  const times: number[] = [];
  const plannedEnd = (at: number, end: () => void) => {
    open.add(end);
    scheduler.after(at, () => open.delete(end) && end(), world);
  };
  for (const item of plan) {
    const own = random.stream(item.stream);
    const happen = {
      mails: () => mailing.burst((item as { count: number }).count, own),
      fault: () => beginFault(scene, item as never, own, plannedEnd, invariants),
      order: () => give(scene, item as never, own, plannedEnd, invariants),
    };
    scheduler.after(begin - scheduler.now + item.at, happen[item.kind], world);
    if (item.kind !== 'mails') times.push(begin + item.at + item.minutes * minute);
  }
  return {
    times: () => times,
    endAll() {
      for (const end of open) end();
      open.clear();
    },
  };
}

type Named = { name: string; minutes: number };
type PlannedEnd = (afterMs: number, end: () => void) => void;

function beginFault(
  scene: Scene,
  { name, minutes }: Named,
  random: Random,
  plannedEnd: PlannedEnd,
  invariants: Invariants,
): void {
  const [text, end, domain = null] = faults[name]!.begin(scene, random);
  scene.book.tell(-1, `FAULT ${text}`);
  const noteEnd = invariants.noteFault(name, domain, end !== null);
  if (end)
    plannedEnd(minutes * minute, () => {
      end();
      scene.book.tell(-1, `END ${text}`);
      noteEnd();
    });
}

function give(
  scene: Scene,
  { name, minutes }: Named,
  random: Random,
  plannedEnd: PlannedEnd,
  invariants: Invariants,
): void {
  const order = () => {
    const [text, done, undo] = orders[name]!(scene, random);
    scene.book.tell(-1, `ORDER an operator ${text}`);
    const noteEnd = invariants.noteFault(name, null, undo !== undefined);
    done.catch((error) => scene.book.tell(-1, `the order fails: ${error.message}`));
    if (!undo) return;
    plannedEnd(minutes * minute, () => {
      scene.book.tell(-1, `UNDONE: ${text}`);
      const tryAgain = () =>
        void undo().then(noteEnd, () => scheduler.after(5_000, tryAgain, scene.operator));
      scheduler.after(0, tryAgain, scene.operator);
    });
  };
  scheduler.after(0, order, scene.operator);
}

function resultOf(scene: Scene, { failure, faults: happened }: Invariants): Result {
  const { book } = scene;
  const story = failure
    ? book
        .storyOf(failure.mail ?? -1)
        .map(({ at, text }) => `${new Date(at).toISOString().slice(0, 23)}  ${text}`)
    : [];
  const hours = scheduler.now / 3_600_000;
  return {
    failure,
    story,
    figures: {
      hours,
      events: scheduler.count,
      fingerprint: hash('sha256', `${scheduler.fingerprint} ${book.hash()}`).slice(0, 16),
      mails: book.mails.length,
      copies: book.copies.size,
      posts: book.posts.length,
      faults: happened.length,
    },
  };
}
