/**
 * A share of one processor that a process and its threads may use together, by a control group of its own (Linux, as root;
 * version 2 where it has the cpu controller, else version 1). Short periods, so that it is slowed evenly.
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../test/helpers/until.ts';

const periodUs = 5000;

export interface Share {
  add(pid: number): void;
  /** Null: as much as there is. */
  limit(share: number | null): void;
  /** After its processes have ended. */
  remove(): Promise<void>;
}

/** Null where control groups cannot be made here. */
export function makeShare(name: string): Share | null {
  const root = rootOfGroups();
  if (root === null) return null;
  const group = join(root.path, `postern-${process.pid}-${name}`);
  try {
    mkdirSync(group);
  } catch {
    return null;
  }
  const write = (file: string, text: string | number) => writeFileSync(join(group, file), String(text));
  return {
    add: (pid) => write('cgroup.procs', pid),
    limit(share) {
      const quota = share === null ? null : Math.round(share * periodUs);
      if (root.version === 2) write('cpu.max', `${quota ?? 'max'} ${periodUs}`);
      else {
        write('cpu.cfs_period_us', periodUs);
        write('cpu.cfs_quota_us', quota ?? -1);
      }
    },
    async remove() {
      await until(
        () => {
          rmdirSync(group);
          return true;
        },
        { what: `the control group ${group} to be empty` },
      );
    },
  };
}

function rootOfGroups(): { path: string; version: 1 | 2 } | null {
  const controllers = '/sys/fs/cgroup/cgroup.subtree_control';
  if (existsSync(controllers) && readFileSync(controllers, 'utf8').split(/\s/).includes('cpu'))
    return { path: '/sys/fs/cgroup', version: 2 };
  return existsSync('/sys/fs/cgroup/cpu/cpu.cfs_quota_us')
    ? { path: '/sys/fs/cgroup/cpu', version: 1 }
    : null;
}
