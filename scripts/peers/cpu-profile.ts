/**
 * What the .cpuprofile files of Node's `--cpu-prof` say about where the time went, from a moment on: self time by
 * function, and by whose behalf it was spent on. That is the nearest caller that is a file of ours or a package, so
 * that crypto.sign counts for the one who signs; what only Node has called is `node`. Time in which a thread had
 * nothing to do is left out.
 *
 * BUGS: it sees JavaScript threads alone: what libuv's pool does (SQLite, asynchronous crypto) is in no profile. Behind
 * an `await` or an event a caller is not known any more.
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
  /** Microseconds of the monotonic clock, that of process.hrtime. */
  startTime: number;
  samples: number[];
  /** Microseconds before each sample. */
  timeDeltas: number[];
}

export interface Share {
  what: string;
  ms: number;
  /** Of the busy time. */
  share: number;
}

export interface Hot {
  busyMs: number;
  /** The hottest first. */
  behalf: Share[];
  functions: Share[];
}

/** Of all profiles in a directory, one for each thread, as one; from `since`, a time of process.hrtime.bigint(). */
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

/** Milliseconds by node. A sample stands for the time until the next one. */
function selfTimes({ startTime, samples, timeDeltas }: Profile, since: number): Map<number, number> {
  const times = new Map<number, number>();
  let at = startTime;
  for (const [index, id] of samples.entries()) {
    at += timeDeltas[index]!;
    if (at >= since) times.set(id, (times.get(id) ?? 0) + (timeDeltas[index + 1] ?? 0) / 1000);
  }
  return times;
}

/** For each node whose it is; parents come before their children in the list. */
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

/** A package by its name, our files by their path; null: Node's own. */
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
