/**
 * Can this machine send? All checks, side by side, each with what others have found before where it needs that; the
 * whole run is bounded, whatever hangs. Findings come in the order of a mail's way: the machine, DNS, the names and
 * addresses we send from, the way back, the sender domains.
 *
 * Reads and changes nothing, but for one small file in the data directory that it removes again. Never rejects: what
 * a check throws is a finding.
 */

import { withTimeout } from '../../base/with-timeout.ts';
import type { Config } from '../../config.ts';
import {
  addressTasks,
  dnsTasks,
  machineTasks,
  originTasks,
  returnTasks,
  sendingDomains,
} from './check-table.ts';
import type { OpenDb } from './checks/database.ts';
import { Unanswered } from './doctor-dns.ts';
import { type Check, type Finding, type FindingDraft, failure, skipped, warning } from './finding.ts';
import { createSharedFacts } from './shared-facts.ts';
import { realSurroundings, type Surroundings } from './surroundings.ts';

export interface Examination {
  config: Config;
  openDb: OpenDb;
  /** Only this sender domain; null: all that are verified. */
  domain: string | null;
  now(): number;
  surroundings?: Partial<Surroundings>;
  /** How far it has come, and what it waits for. */
  onProgress?(progress: ExamineProgress): void;
}

export interface ExamineProgress {
  done: number;
  /** So far: there may be more to look at when more is known. */
  known: number;
  waitingFor: string[];
}

/** Much of what is found was written by others. */
const maxFound = 2_000;

export async function examine({ onProgress = () => {}, ...parts }: Examination): Promise<Finding[]> {
  const surroundings = { ...realSurroundings, ...parts.surroundings };
  const scene = createSharedFacts({ ...parts, surroundings });
  const { all: timeoutMs } = surroundings.patience;
  const began = performance.now();
  const left = () => Math.max(timeoutMs - (performance.now() - began), 0);
  const waiting = new Set<Check>();
  let known = 0;
  const tell = () => {
    const waitingFor = [...waiting].map(({ check, subject }) => `${check} of ${subject}`);
    onProgress({ done: known - waiting.size, known, waitingFor });
  };

  async function run(tasks: Check[]): Promise<Finding[]> {
    known += tasks.length;
    for (const task of tasks) waiting.add(task);
    return Promise.all(
      tasks.map(async (task) => {
        const { check, subject } = task;
        const late = () => skipped(`took longer than ${timeoutMs / 1000} s`);
        const seen = await withTimeout(left(), look(task), late);
        waiting.delete(task);
        tell();
        return { check, subject, ...seen, found: seen.found.slice(0, maxFound) };
      }),
    );
  }

  const groups = [
    machineTasks(scene),
    dnsTasks(scene),
    originTasks(scene),
    addressTasks(scene),
    returnTasks(scene),
    sendingDomains(scene),
  ].map(async (tasks) => run(await withTimeout(left(), Promise.resolve(tasks), () => [])));
  return (await Promise.all(groups)).flat();
}

async function look(task: Check): Promise<FindingDraft> {
  try {
    return await task.look();
  } catch (error) {
    const { message } = error as Error;
    if (!(error instanceof Unanswered))
      return failure(`the check itself failed: ${message}`, 'report this as a bug in Postern');
    if (error.isSilence) return skipped(`not known: ${message}`);
    return warning(
      message,
      'if this persists, receivers get no answer either: check the name servers of that name and its DNSSEC signatures',
    );
  }
}
