/**
 * The settings file of a service (config/postern.env): a line NAME=VALUE for each setting. systemd (EnvironmentFile=), Docker
 * Compose (env_file:) and this parser read the same file, so a line that they would read differently is a fault here. No
 * shell reads it: an `&` is a character like any other.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** Where systemd's service has it, and its data (config/postern.service). */
export const serviceFile = '/etc/postern/postern.env';
export const serviceDataDir = '/var/lib/postern';

interface Variable {
  text: string;
  line: number;
}

export interface EnvFile {
  variables: Map<string, Variable>;
  /** By the number of the line. */
  faults: { line: number; message: string }[];
}

/** A text is a reason why the file cannot be read. `descriptor`: where the caller has opened it already. */
export function readEnvFile(path: string, descriptor: number | null): EnvFile | string {
  try {
    return parseEnvFile(descriptor === null ? readAll(path) : readOpen(descriptor));
  } catch (error) {
    return `${path} cannot be read: ${(error as Error).message}; check that it is there, and who may read it`;
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

/** From the beginning, however often. */
function readOpen(descriptor: number): string {
  const bytes = Buffer.alloc(fstatSync(descriptor).size);
  return bytes.toString('utf8', 0, readSync(descriptor, bytes, 0, bytes.length, 0));
}

export function parseEnvFile(text: string): EnvFile {
  const file: EnvFile = { variables: new Map(), faults: [] };
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = index + 1;
    const read = readLine(raw);
    if (read === null) continue;
    if ('fault' in read) file.faults.push({ line, message: read.fault });
    else file.variables.set(read.name, { text: read.value, line });
  }
  return file;
}

type Line = { name: string; value: string } | { fault: string } | null;

const quoted = 'write it between single quotes';

function readLine(raw: string): Line {
  const line = raw.trim();
  if (line === '') return null;
  if (line.startsWith('#')) {
    const goesOn = 'a comment ends in \\, and for systemd the next line belongs to it; take the \\ away';
    return line.endsWith('\\') ? { fault: goesOn } : null;
  }
  const [, name, value] = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/.exec(line) ?? [];
  if (name === undefined || value === undefined)
    return { fault: 'this line is not NAME=VALUE; correct it, or put a # before it' };
  const read = readValue(value.trim());
  return 'fault' in read ? { fault: `${name}: ${read.fault}` } : { name, ...read };
}

/** No value is quoted in a fault: it may be a secret. */
function readValue(value: string): { value: string } | { fault: string } {
  const quote = value[0];
  if (quote === "'" || quote === '"') return readQuoted(value, quote);
  const [special] = /[\\'"`$]/.exec(value) ?? [];
  if (special !== undefined) return { fault: `systemd and Docker read a ${special} differently; ${quoted}` };
  if (/(^|\s)#/.test(value))
    return { fault: `for systemd a # belongs to the value, for Docker it begins a comment; ${quoted}` };
  return { value };
}

function readQuoted(value: string, quote: string): { value: string } | { fault: string } {
  const end = value.indexOf(quote, 1);
  if (end === -1) return { fault: `the quote ${quote} is not closed on this line; close it` };
  if (end < value.length - 1)
    return { fault: `something follows the quoted value; put all of it into the quotes` };
  const inner = value.slice(1, -1);
  if (inner.includes('\\')) return { fault: 'systemd and Docker read a \\ differently; use a value without' };
  const isExpanded = quote === '"' && /[$`]/.test(inner);
  return isExpanded ? { fault: `Docker takes a $ for a variable; ${quoted}` } : { value: inner };
}
