/**
 * The doctor: checks whether this server can send mail. All checks run at the same time, and the whole run has a time
 * limit. The findings are in the order of a mail's way: the machine, DNS, the names and addresses we send from, the return
 * path, the sender domains.
 *
 * Changes nothing, except for a small file in the data directory that it removes again. Never rejects: an error of a check
 * is a finding.
 */
import { withTimeout } from '#platform/base/waits.ts';
import {
  addressChecks,
  certificateChecks,
  dnsChecks,
  machineChecks,
  originChecks,
  returnPathChecks,
  senderDomainChecks,
  setUpChecks,
} from './check-table.ts';
import { createDoctorContext, type DoctorContext, type DoctorInputs } from './doctor-context.ts';
import { type Check, type Finding, skipped } from './finding.ts';
import { findingOf } from './run-check.ts';
import { realSurroundings, type Surroundings } from './surroundings.ts';

export interface Examination extends DoctorInputs {
  surroundings?: Partial<Surroundings>;
  onProgress?(progress: ExamineProgress): void;
}

export interface ExamineProgress {
  done: number;
  /** Grows during the run, because some checks follow from the results of others. */
  known: number;
  waitingFor: string[];
}

/** Findings quote text from other hosts, which may be of any length. */
const maxFound = 2_000;

export async function examine(examination: Examination): Promise<Finding[]> {
  const context = contextOf(examination);
  const groups = [
    machineChecks(context),
    certificateChecks(context),
    dnsChecks(context),
    originChecks(context),
    addressChecks(context),
    returnPathChecks(context),
    senderDomainChecks(context),
  ];
  return runGroups(groups, context, examination.onProgress);
}

/**
 * The checks that a set-up begins with, before there is a data directory, and the addresses that other hosts see.
 * `isRunning`: a server runs already, so its ports are not free.
 */
export async function examineMachine(
  examination: Omit<Examination, 'openDb' | 'domain'>,
  isRunning: boolean,
): Promise<{ findings: Finding[]; addresses: string[] }> {
  const context = contextOf({ ...examination, openDb: async () => null, domain: null });
  const groups = [
    setUpChecks(context, isRunning),
    dnsChecks(context),
    originChecks(context),
    addressChecks(context),
  ];
  const findings = await runGroups(groups, context, examination.onProgress);
  const senders = (await context.senders).map(({ address }) => address);
  // Without a connection to the outside, no host tells us the address that it sees.
  const addresses = senders.length > 0 ? senders : await context.ownAddresses;
  return { findings, addresses: [...new Set(addresses)] };
}

function contextOf({ onProgress, surroundings, ...inputs }: Examination): DoctorContext {
  return createDoctorContext(inputs, { ...realSurroundings, ...surroundings });
}

async function runGroups(
  groups: (Check[] | Promise<Check[]>)[],
  { surroundings }: DoctorContext,
  onProgress: Examination['onProgress'] = () => {},
): Promise<Finding[]> {
  const { all: timeoutMs } = surroundings.timeouts;
  const began = performance.now();
  const left = () => Math.max(timeoutMs - (performance.now() - began), 0);
  const waiting = new Set<Check>();
  let known = 0;
  const report = () => {
    const waitingFor = [...waiting].map(({ check, subject }) => `${check} of ${subject}`);
    onProgress({ done: known - waiting.size, known, waitingFor });
  };

  async function run(check: Check): Promise<Finding> {
    const late = () => skipped(`took longer than ${timeoutMs / 1000} s`);
    const draft = await withTimeout(left(), findingOf(check), late);
    waiting.delete(check);
    report();
    return { check: check.check, subject: check.subject, ...draft, found: draft.found.slice(0, maxFound) };
  }

  async function runGroup(group: Check[] | Promise<Check[]>): Promise<Finding[]> {
    const checks = await withTimeout(left(), Promise.resolve(group), () => []);
    known += checks.length;
    for (const check of checks) waiting.add(check);
    return Promise.all(checks.map(run));
  }

  return (await Promise.all(groups.map(runGroup))).flat();
}
