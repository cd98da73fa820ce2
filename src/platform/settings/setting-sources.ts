/**
 * Reads the settings from their sources: the environment, the NAME=VALUE file of POSTERN_ENV_FILE, and the JSON file of
 * POSTERN_CONFIG (comments allowed); an earlier source takes precedence. Each text keeps its source. Problems of the sources
 * (an unreadable file, an unknown name) are returned, one line each. platform/settings/config.ts parses the texts. An empty
 * value counts as not given, because shells and compose files leave out a setting that way.
 */
import type { Node } from 'jsonc-parser';
import { nearestTo } from '#platform/base/closest-name.ts';
import { type EnvFile, readEnvFile, serviceDataDir, serviceFile } from './env-file.ts';
import { readJsonc } from './jsonc.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Known {
  name: string;
  list: boolean;
}

export interface Given {
  text: string;
  source: 'environment' | `file ${string}`;
  /** The end of a message about it: the file and the line. */
  where: string;
}

export interface Gathered {
  given: Map<string, Given>;
  problems: string[];
}

const prefix = 'POSTERN_';
const fileSetting = 'POSTERN_CONFIG';
const envFileSetting = 'POSTERN_ENV_FILE';
/** A descriptor of that file, opened by the caller because this user may not be allowed to read it. */
const envFileDescriptor = 'POSTERN_ENV_FD';
/** Variables that are not settings: the sources, and arguments of commands. */
const others = [fileSetting, envFileSetting, envFileDescriptor, 'POSTERN_MOVE_TO', 'POSTERN_ORG'];

/** Kubernetes sets them in each pod for each Service of its namespace, such as one named postern (enableServiceLinks). */
const serviceLink =
  /_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]{1,100})?|PORT_\d{1,5}_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/;

/** With a Service named postern-http, POSTERN_HTTP_PORT is tcp://…, which is not a port. */
function isServiceLink(name: string, value = ''): boolean {
  return serviceLink.test(name) || (name.endsWith('_PORT') && /^(?:tcp|udp|sctp):\/\//.test(value));
}

export function gather(env: Environment, known: readonly Known[]): Gathered {
  const gathered: Gathered = { given: new Map(), problems: [] };
  const envFile = gatherEnvFile(env, known, gathered);
  const path = env[fileSetting]?.trim() || envFile?.variables.get(fileSetting)?.text;
  const fromEnvFile = [...gathered.given];
  if (path) gatherFile(path, known, gathered);
  for (const [name, given] of fromEnvFile) gathered.given.set(name, given);
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith(prefix) || others.includes(name) || isServiceLink(name, value)) continue;
    add(gathered, known, name, { text: value ?? '', source: 'environment', where: '' });
  }
  return gathered;
}

function add({ given, problems }: Gathered, known: readonly Known[], name: string, from: Given): void {
  const text = from.text.trim();
  if (!known.some((each) => each.name === name)) problems.push(unknown(name, known) + from.where);
  else if (text !== '') given.set(name, { ...from, text });
}

function envFileOf(env: Environment): { path: string; file: EnvFile | string } | null {
  const path = env[envFileSetting]?.trim();
  if (!path) return null;
  const descriptor = env[envFileDescriptor]?.trim();
  return { path, file: readEnvFile(path, descriptor ? Number(descriptor) : null) };
}

/** Variables of the env file for libraries, such as PGPASSWORD, that the environment does not set. */
export function otherVariables(env: Environment): Record<string, string> {
  const read = envFileOf(env)?.file;
  if (read === undefined || typeof read === 'string') return {};
  const own = [...read.variables].filter(([name]) => !name.startsWith(prefix) && env[name] === undefined);
  return Object.fromEntries(own.map(([name, { text }]) => [name, text]));
}

function gatherEnvFile(env: Environment, known: readonly Known[], gathered: Gathered): EnvFile | null {
  const { given, problems } = gathered;
  const read = envFileOf(env);
  if (read === null) return null;
  const { path, file } = read;
  if (typeof file === 'string') {
    problems.push(`${envFileSetting}: ${file}`);
    return null;
  }
  if (path === serviceFile) {
    const source = `file ${path}` as const;
    given.set('POSTERN_DATA_DIR', { text: serviceDataDir, source, where: ` (the default beside ${path})` });
  }
  for (const { line, message } of file.problems) problems.push(`${message} (${path}, line ${line})`);
  for (const [name, { text, line }] of file.variables) {
    if (!name.startsWith(prefix) || name === fileSetting) continue;
    add(gathered, known, name, { text, source: `file ${path}`, where: ` (${path}, line ${line})` });
  }
  return file;
}

function gatherFile(path: string, known: readonly Known[], gathered: Gathered): void {
  const { problems } = gathered;
  const file = readObject(path);
  if (typeof file === 'string') {
    problems.push(`${fileSetting}: ${file}`);
    return;
  }
  const seen = new Set<string>();
  for (const { name, value, line } of file) {
    const where = ` (${path}, line ${line})`;
    const setting = known.find((each) => each.name === name);
    const text = setting && textOf(value, setting.list);
    if (setting && seen.has(name)) problems.push(`${name}: given twice; keep one of them${where}`);
    else if (setting && text === undefined) problems.push(`${name}: ${notText(value, setting.list)}${where}`);
    else add(gathered, known, name, { text: text ?? '', source: `file ${path}`, where });
    seen.add(name);
  }
}

interface Member {
  name: string;
  value: Node;
  line: number;
}

/** The members of the file's object, or a message that says why there are none. */
function readObject(path: string): Member[] | string {
  const file = readJsonc(path);
  if (typeof file === 'string') return file;
  const { root, lineOf } = file;
  if (root?.type !== 'object') return `${path} is not a JSON object; write { "POSTERN_…": value, … }`;
  return (root.children ?? []).map((member) => {
    const [key, value] = member.children ?? [];
    return { name: key!.value, value: value!, line: lineOf(member) };
  });
}

/** Undefined if the value cannot be the value of a setting. */
function textOf(node: Node, list: boolean): string | undefined {
  if (['string', 'number', 'boolean'].includes(node.type)) return String(node.value).trim();
  if (!list || node.type !== 'array') return undefined;
  const words = (node.children ?? []).map((child) => textOf(child, false));
  return words.includes(undefined) ? undefined : words.join(' ');
}

function notText(node: Node, list: boolean): string {
  if (node.type === 'null') return 'null is not a value; omit the line to use the default';
  const give = list ? 'a string, or an array of strings' : 'a string, a number, true or false';
  return `${node.type === 'array' ? 'this array' : 'an object'} is not a value here; give ${give}`;
}

function unknown(name: string, known: readonly Known[]): string {
  if (others.includes(name)) return `${name}: set it in the environment; a file cannot name another file`;
  const nearest = nearestName(name, known);
  return `${name}: no such setting; ${nearest ? `did you mean ${nearest}?` : 'docs/settings.md lists all settings'}`;
}

/** Null if less than half of the letters match; the common prefix does not count. */
function nearestName(name: string, known: readonly Known[]): string | null {
  const bare = (each: string) => each.toUpperCase().replace(prefix, '');
  const names = known.map((each) => each.name);
  const nearest = nearestTo(bare(name), names, bare);
  if (nearest === null) return null;
  const letters = Math.max(bare(name).length, bare(nearest.name).length);
  return nearest.edits * 2 < letters ? nearest.name : null;
}
