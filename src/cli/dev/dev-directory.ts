/** The directory of a development server: its data, and a file that marks it and keeps its key for the next run. */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Failure } from '#cli/failure.ts';
import { makeDirectory, writeAtomic } from '#platform/base/atomic-file.ts';
import { lockDataDir } from '#platform/database/engine/data-dir-lock.ts';
import { devSettingsFile } from '#platform/settings/installation.ts';

/** The secrets that the next run needs again: API keys are stored as hashes only. */
export interface DevState {
  orgId: string;
  key: string;
}

const stateFile = (directory: string) => join(directory, 'dev.json');

/** Null if the directory is new. */
export function readState(directory: string): DevState | null {
  const file = stateFile(directory);
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return text === '' ? null : JSON.parse(text);
}

export function writeState(directory: string, state: DevState): void {
  writeAtomic(stateFile(directory), `${JSON.stringify(state)}\n`);
}

/** The settings for commands that are given in the directory above, or in this one (platform/settings/installation.ts). */
export function writeSettings(directory: string, settings: Record<string, string>): void {
  const { POSTERN_DATA_DIR: _, ...others } = settings;
  const lines = Object.entries(others).map(([name, value]) => `${name}=${value}`);
  const head = '# Written by `postern dev` at each start, for commands in this directory.';
  writeAtomic(devSettingsFile(directory), `${[head, ...lines].join('\n')}\n`);
}

/** Creates the directory, or empties it first. Never touches one that `postern dev` has not made. */
export async function openDirectory(directory: string, isFresh: boolean): Promise<void> {
  const isOurs = existsSync(stateFile(directory));
  if (!isOurs && existsSync(directory) && readdirSync(directory).length > 0) {
    throw new Failure(`${directory} is not a directory of \`postern dev\`; choose another with --directory`);
  }
  makeDirectory(directory);
  if (isFresh && isOurs) {
    // Refuses if a server is running there.
    const release = await lockDataDir(directory);
    try {
      for (const name of readdirSync(directory)) rmSync(join(directory, name), { recursive: true });
    } finally {
      await release();
    }
  }
  if (!existsSync(stateFile(directory))) writeAtomic(stateFile(directory), '');
}
