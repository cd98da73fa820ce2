/** This node's name in leases. It is stored, so that a killed node recognizes its leases when it starts again. */
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeAtomic } from '#platform/base/atomic-file.ts';

export function nodeId(dataDir: string): string {
  const known = readNodeId(dataDir);
  if (known !== null) return known;
  const id = randomUUID();
  writeAtomic(fileIn(dataDir), `${id}\n`);
  return id;
}

/** Null: no node has run on this directory. */
export function readNodeId(dataDir: string): string | null {
  const file = fileIn(dataDir);
  return (existsSync(file) && readFileSync(file, 'utf8').trim()) || null;
}

const fileIn = (dataDir: string) => join(dataDir, 'node-id');
