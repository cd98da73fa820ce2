/** The data directory's disk: how fast it takes what must not be lost, and how much room it has. */
import type { Config } from '../../../config.ts';
import { type FindingDraft, failure, ok, skipped, warning } from '../finding.ts';
import type { Surroundings } from '../surroundings.ts';

/** A commit waits for the disk twice or so; an SSD takes about one millisecond, a spinning disk ten. */
const slowMs = 25;

export async function measureSync(dataDir: string, { syncTimes }: Surroundings): Promise<FindingDraft> {
  const times = await syncTimes(dataDir).catch((error: NodeJS.ErrnoException) => error);
  if (times instanceof Error) return troubleOf(dataDir, times);
  const median = times.sort((a, b) => a - b)[times.length >> 1]!;
  const found = `${median.toFixed(median < 10 ? 1 : 0)} ms to reach the disk`;
  if (median <= slowMs) return ok(found);
  return warning(found, 'every send request waits for the disk: put POSTERN_DATA_DIR on a local SSD');
}

export async function measureSpace(
  { dataDir, minFreeSpace }: Pick<Config, 'dataDir' | 'minFreeSpace'>,
  { freeBytes }: Surroundings,
): Promise<FindingDraft> {
  const free = await freeBytes(dataDir).catch((error: NodeJS.ErrnoException) => error);
  if (free instanceof Error) return troubleOf(dataDir, free);
  const found = `${size(free)} free; mail is refused below ${size(minFreeSpace)} (POSTERN_MIN_FREE_SPACE)`;
  const makeRoom = `free some space in ${dataDir}, or shorten POSTERN_KEEP_MESSAGES and POSTERN_KEEP_EVENTS`;
  if (free < minFreeSpace) return failure(found, makeRoom);
  return free < 2 * minFreeSpace ? warning(found, makeRoom) : ok(found);
}

function troubleOf(dataDir: string, { code, message }: NodeJS.ErrnoException): FindingDraft {
  if (code === 'ENOENT')
    return skipped(`${dataDir} does not exist yet; the first start of the server creates it`);
  return failure(
    `${dataDir} cannot be used: ${message}`,
    'correct its owner and permissions, or repair the disk; run this command as the user of the server',
  );
}

export function size(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const at = bytes < 1 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), units.length - 1);
  const value = bytes / 1024 ** at;
  return `${value < 10 && at > 0 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}
