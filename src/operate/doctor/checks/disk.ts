/** The data directory's disk: how long a synced write takes, and how much space is free. */

import { type FindingDraft, failure, ok, skipped, warning } from '#operate/doctor/finding.ts';
import type { Surroundings } from '#operate/doctor/surroundings.ts';
import type { Config } from '#platform/settings/config.ts';

/** A commit waits for about two syncs. An SSD takes about 1 ms for one, a spinning disk 10 ms. */
const slowMs = 25;

export async function checkDiskSpeed(dataDir: string, { syncTimes }: Surroundings): Promise<FindingDraft> {
  const times = await syncTimes(dataDir).catch((error: NodeJS.ErrnoException) => error);
  if (times instanceof Error) return unusable(dataDir, times);
  const median = times.sort((a, b) => a - b)[times.length >> 1]!;
  const found = `${median.toFixed(median < 10 ? 1 : 0)} ms to reach the disk`;
  if (median <= slowMs) return ok(found);
  return warning(found, 'every send request waits for the disk: put POSTERN_DATA_DIR on a local SSD');
}

export async function checkDiskSpace(
  { dataDir, minFreeSpace }: Pick<Config, 'dataDir' | 'minFreeSpace'>,
  { freeBytes }: Surroundings,
): Promise<FindingDraft> {
  const free = await freeBytes(dataDir).catch((error: NodeJS.ErrnoException) => error);
  if (free instanceof Error) return unusable(dataDir, free);
  const found = `${formatBytes(free)} free; mail is refused below ${formatBytes(minFreeSpace)} (POSTERN_MIN_FREE_SPACE)`;
  const makeRoom = `free some space in ${dataDir}, or shorten POSTERN_KEEP_MESSAGES and POSTERN_KEEP_EVENTS`;
  if (free < minFreeSpace) return failure(found, makeRoom);
  return free < 2 * minFreeSpace ? warning(found, makeRoom) : ok(found);
}

function unusable(dataDir: string, { code, message }: NodeJS.ErrnoException): FindingDraft {
  if (code === 'ENOENT')
    return skipped(`${dataDir} does not exist yet; the first start of the server creates it`);
  return failure(
    `${dataDir} cannot be used: ${message}`,
    'correct its owner and permissions, or repair the disk; run this command as the user of the server',
  );
}

export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const at = bytes < 1 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), units.length - 1);
  const value = bytes / 1024 ** at;
  return `${value < 10 && at > 0 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}
