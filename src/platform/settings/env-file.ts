/**
 * Parses the settings file of a service (config/postern.env): a line NAME=VALUE for each setting. systemd (EnvironmentFile=)
 * and Docker Compose (env_file:) read the same file, so a line that they would read differently is an error here. No shell
 * reads it, so an `&` needs no quotes.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { reasonOf } from '#platform/base/system-error.ts';

/** The settings file and the data directory of the systemd service (config/postern.service). */
export const serviceFile = '/etc/postern/postern.env';
export const serviceDataDir = '/var/lib/postern';

interface Variable {
  text: string;
  line: number;
}

export interface EnvFile {
  variables: Map<string, Variable>;
  problems: { line: number; message: string }[];
}

/** A string is the reason why the file cannot be read. `descriptor`: set if the caller has already opened the file. */
export function readEnvFile(path: string, descriptor: number | null): EnvFile | string {
  try {
    return parseEnvFile(descriptor === null ? readAll(path) : readOpen(descriptor));
  } catch (error) {
    return `${path} cannot be read: ${reasonOf(error)}; check that it exists and that this user may read it`;
  }
}

function readAll(path: string): string {
  const descriptor = openSync(path, 'r');
  try {
    return readOpen(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Reads from the beginning, wherever the descriptor's position is. */
function readOpen(descriptor: number): string {
  const bytes = Buffer.alloc(fstatSync(descriptor).size);
  return bytes.toString('utf8', 0, readSync(descriptor, bytes, 0, bytes.length, 0));
}

export function parseEnvFile(text: string): EnvFile {
  const file: EnvFile = { variables: new Map(), problems: [] };
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = index + 1;
    const read = readLine(raw);
    if (read === null) continue;
    if ('problem' in read) file.problems.push({ line, message: read.problem });
    else file.variables.set(read.name, { text: read.value, line });
  }
  return file;
}

type Line = { name: string; value: string } | { problem: string } | null;

const quoted = 'put the value in single quotes';

function readLine(raw: string): Line {
  const line = raw.trim();
  if (line === '') return null;
  if (line.startsWith('#')) {
    const continues = 'a comment ends in \\, and systemd treats the next line as part of it; remove the \\';
    return line.endsWith('\\') ? { problem: continues } : null;
  }
  const [, name, value] = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/.exec(line) ?? [];
  if (name === undefined || value === undefined)
    return { problem: 'this line is not NAME=VALUE; correct it, or put a # before it' };
  const read = readValue(value.trim());
  return 'problem' in read ? { problem: `${name}: ${read.problem}` } : { name, ...read };
}

/** Messages never quote the value, because it may be a secret. */
function readValue(value: string): { value: string } | { problem: string } {
  const quote = value[0];
  if (quote === "'" || quote === '"') return readQuoted(value, quote);
  const [special] = /[\\'"`$]/.exec(value) ?? [];
  if (special !== undefined)
    return { problem: `systemd and Docker read a ${special} differently; ${quoted}` };
  if (/(^|\s)#/.test(value))
    return { problem: `systemd reads a # as part of the value, Docker as the start of a comment; ${quoted}` };
  return { value };
}

function readQuoted(value: string, quote: string): { value: string } | { problem: string } {
  const end = value.indexOf(quote, 1);
  if (end === -1) return { problem: `the quote ${quote} is not closed on this line; close it` };
  if (end < value.length - 1)
    return { problem: `there is text after the quoted value; put all of it inside the quotes` };
  const inner = value.slice(1, -1);
  if (inner.includes('\\'))
    return { problem: 'systemd and Docker read a \\ differently; use a value without it' };
  const isExpanded = quote === '"' && /[$`]/.test(inner);
  return isExpanded ? { problem: `Docker expands a $ as a variable; ${quoted}` } : { value: inner };
}
