/**
 * The script of the Scalar API reference, one file with everything that it needs.
 * Read in @scalar/fastify-api-reference 1.64.1.
 * The public part of this package is a plugin for Fastify, which Postern does not use, and which has the script as a string.
 * @scalar/api-reference exports the script, but has 270 dependencies.
 */
import { readFile } from 'node:fs/promises';
import { runInNewContext } from 'node:vm';

export async function readReferenceScript(): Promise<Buffer> {
  const plugin = await readFile(new URL(import.meta.resolve('@scalar/fastify-api-reference')), 'utf8');
  const literal = /^var standalone_default = (".*");$/m.exec(plugin)?.[1] ?? '""';
  return Buffer.from(runInNewContext(literal));
}
