/**
 * The script of the Scalar API reference, one file with everything that it needs.
 * Read in @scalar/fastify-api-reference 1.60.0.
 * The public part of this package is a plugin for Fastify, which Postern does not use. @scalar/api-reference exports the
 * script, but has 270 dependencies. Later versions of this package have the script only as a string inside the plugin.
 */
import { readFile } from 'node:fs/promises';

export function readReferenceScript(): Promise<Buffer> {
  const plugin = import.meta.resolve('@scalar/fastify-api-reference');
  return readFile(new URL('js/standalone.js', plugin));
}
