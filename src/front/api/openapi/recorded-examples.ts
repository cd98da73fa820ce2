/**
 * The examples of the OpenAPI document. test/contract/document-*.test.ts record them from a real server (UPDATE_GOLDEN=1) and
 * fail if the server answers differently. The key of an example is "OPERATION BODY TYPE NAME", where BODY is "request" or
 * the status of the response; an error is named by its code and has no summary.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Examples } from './openapi-types.ts';

export type RecordedExamples = Record<string, { summary?: string; value: unknown }>;

/** One file for each test that records. */
const files = ['email-examples.json', 'management-examples.json'];

export function readExamples(): RecordedExamples {
  const read = (file: string) => JSON.parse(readFileSync(join(import.meta.dirname, file), 'utf8'));
  return Object.assign({}, ...files.map(read));
}

/** Undefined if there are none. */
export function examplesOf(recorded: RecordedExamples, prefix: string): Examples | undefined {
  const found = Object.entries(recorded).filter(([key]) => key.startsWith(prefix));
  if (found.length === 0) return undefined;
  return Object.fromEntries(found.map(([key, example]) => [key.slice(prefix.length), example])) as Examples;
}
