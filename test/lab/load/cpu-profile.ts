/**
 * Evaluates the .cpuprofile files of Node's `--cpu-prof` from a given moment on: self time by function, and by owner. The
 * owner is the nearest caller in a file of ours or in a package, so that the time of crypto.sign counts for the code that
 * signs; functions that only Node has called belong to `node`. Idle time is left out.
 *
 * BUGS: covers JavaScript threads only. Work in libuv's pool (SQLite, asynchronous crypto) is in no profile. The caller of
 * code after an `await` or in an event handler is not known.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

interface Frame {
  functionName: string;
  url: string;
  lineNumber: number;
}

interface Profile {
  nodes: { id: number; callFrame: Frame; children?: number[] }[];
  /** Microseconds of the monotonic clock that process.hrtime uses. */
  startTime: number;
  samples: number[];
  /** Microseconds before each sample. */
  timeDeltas: number[];
}

export interface Share {
  what: string;
  ms: number;
  /** Share of the busy time. */
  share: number;
}

export interface Hot {
  busyMs: number;
  /** Those with the most time first. */
  behalf: Share[];
  functions: Share[];
}

/** Combines all profiles in a directory, one per thread, from `since` on, a time of process.hrtime.bigint(). */
export async function readProfiles(directory: string, since: bigint): Promise<Hot> {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.cpuprofile'));
  const behalf = new Map<string, number>();
  const functions = new Map<string, number>();
  for (const name of names) {
    const profile = JSON.parse(await readFile(join(directory, name), 'utf8')) as Profile;
    const times = selfTimes(profile, Number(since / 1000n));
    const owners = ownersOf(profile);
    for (const { id, callFrame } of profile.nodes) {
      if (callFrame.functionName === '(idle)') continue;
      add(behalf, owners.get(id)!, times.get(id) ?? 0);
      add(functions, shown(callFrame), times.get(id) ?? 0);
    }
  }
  const busyMs = [...functions.values()].reduce((sum, ms) => sum + ms, 0);
  return { busyMs, behalf: ranked(behalf, busyMs), functions: ranked(functions, busyMs) };
}

/** Milliseconds by node. A sample counts for the time until the next one. */
function selfTimes({ startTime, samples, timeDeltas }: Profile, since: number): Map<number, number> {
  const times = new Map<number, number>();
  let at = startTime;
  for (const [index, id] of samples.entries()) {
    at += timeDeltas[index]!;
    if (at >= since) times.set(id, (times.get(id) ?? 0) + (timeDeltas[index + 1] ?? 0) / 1000);
  }
  return times;
}

/** The owner of each node; parents come before their children in the list. */
function ownersOf({ nodes }: Profile): Map<number, string> {
  const owners = new Map<number, string>();
  for (const { id, callFrame, children = [] } of nodes) {
    const { functionName, url } = callFrame;
    const isOfV8 = /^\((?!root|anonymous)/.test(functionName);
    const owner = (isOfV8 ? functionName : ownerOf(url)) ?? owners.get(id) ?? 'node';
    owners.set(id, owner);
    for (const child of children) owners.set(child, owner);
  }
  return owners;
}

/** A package's name, or the path of a file of ours; null for Node's own code. */
function ownerOf(url: string): string | null {
  const inPackage = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url);
  if (inPackage) return inPackage[1]!;
  return url.startsWith('file:') ? fileOf(url) : null;
}

function fileOf(url: string): string {
  return url.replace(/^.*\/node_modules\//, '').replace(/^.*\/src\//, 'src/');
}

function shown({ functionName, url, lineNumber }: Frame): string {
  const name = functionName || '(anonymous)';
  return url ? `${name}  ${fileOf(url)}:${lineNumber + 1}` : name;
}

function add(map: Map<string, number>, key: string, ms: number): void {
  map.set(key, (map.get(key) ?? 0) + ms);
}

function ranked(times: Map<string, number>, busyMs: number): Share[] {
  return [...times].map(([what, ms]) => ({ what, ms, share: ms / busyMs })).sort((a, b) => b.ms - a.ms);
}
