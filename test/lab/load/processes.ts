/**
 * The CPU time and memory of processes, from /proc: a process with its threads and its children with theirs, including those
 * that have ended. Linux only.
 *
 * BUGS: a child whose parent ended before it is not counted.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** USER_HZ, which is 100 on every current Linux. */
const ticksASecond = 100;

interface Stat {
  pid: number;
  parent: number;
  ticks: number;
}

/** proc(5): the name may contain anything and ends at the last parenthesis; times are fields 14 to 17. */
function statOf(pid: number): Stat | null {
  try {
    const { fields } = readStat(`/proc/${pid}/stat`);
    const ticks = fields.slice(11, 15).reduce((sum, one) => sum + Number(one), 0);
    return { pid, parent: Number(fields[1]), ticks };
  } catch {
    // It ended after it was listed.
    return null;
  }
}

/** The name, and the fields from the third on. */
function readStat(file: string): { name: string; fields: string[] } {
  const text = readFileSync(file, 'latin1');
  const end = text.lastIndexOf(')');
  return { name: text.slice(text.indexOf('(') + 1, end), fields: text.slice(end + 2).split(' ') };
}

function familyOf(roots: number[]): Stat[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => statOf(Number(pid)))
    .filter((one) => one !== null);
  const family = all.filter(({ pid }) => roots.includes(pid));
  for (const { pid } of family) family.push(...all.filter(({ parent }) => parent === pid));
  return family;
}

/** User and system time of these processes and their descendants. */
export function cpuSeconds(roots: number[]): number {
  return familyOf(roots).reduce((sum, { ticks }) => sum + ticks, 0) / ticksASecond;
}

/** Busy time of all processors since the machine was started; on a virtual machine including time stolen by the host. */
export function busySeconds(): number {
  const [first] = readFileSync('/proc/stat', 'latin1').split('\n');
  const [user, nice, system, , , irq, softirq, steal] = first!.split(/\s+/).slice(1).map(Number) as number[];
  return (user! + nice! + system! + irq! + softirq! + steal!) / ticksASecond;
}

/** Sum of the peak memory of each process (VmHWM); shared memory is counted in each. */
export function peakMb(roots: number[]): number {
  const kb = familyOf(roots).map(({ pid }) => {
    try {
      return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0);
    } catch {
      return 0;
    }
  });
  return Math.round(kb.reduce((sum, one) => sum + one, 0) / 1024);
}

/** By thread, how often the threads of these processes and their descendants have gone to sleep, and so were woken up. */
export function wakeUps(roots: number[]): Map<string, number> {
  const threads = familyOf(roots).flatMap(({ pid }) => statusOfThreads(pid));
  const numberIn = (status: string, name: string) =>
    Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0);
  return new Map(
    threads.map((status) => [`${numberIn(status, 'Pid')}`, numberIn(status, 'voluntary_ctxt_switches')]),
  );
}

/** Of the threads that run at the end. */
export function wakeUpsBetween(before: Map<string, number>, after: Map<string, number>): number {
  return [...after].reduce((sum, [thread, count]) => sum + count - (before.get(thread) ?? 0), 0);
}

function statusOfThreads(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/status`, 'latin1'),
    );
  } catch {
    // It ended after it was listed.
    return [];
  }
}

/** The descendants' ids, without the root. */
export function childrenOf(root: number): number[] {
  return familyOf([root])
    .map(({ pid }) => pid)
    .filter((pid) => pid !== root);
}

/** User and system time of a process's running threads, by name. */
export function threadSeconds(pid: number): Map<string, number> {
  const seconds = new Map<string, number>();
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const { name, fields } = readStat(`/proc/${pid}/task/${thread}/stat`);
    const spent = (Number(fields[11]) + Number(fields[12])) / ticksASecond;
    seconds.set(name, (seconds.get(name) ?? 0) + spent);
  }
  return seconds;
}

/** User and system time of the thread that runs the program, of Node the event loop. */
export function mainThreadSeconds(pid: number): number {
  const { fields } = readStat(`/proc/${pid}/task/${pid}/stat`);
  return (Number(fields[11]) + Number(fields[12])) / ticksASecond;
}
