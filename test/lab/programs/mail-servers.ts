/** The mail servers that scripts start and talk to, and the options by which those scripts choose among them. */
import { resolve } from 'node:path';
import { readOptions } from '../load/stage.ts';
import { eximProgram } from './exim.ts';
import { openSmtpdProgram } from './opensmtpd.ts';

const programs = { postfix: '/usr/sbin/postfix', exim: eximProgram, opensmtpd: openSmtpdProgram };

type ServerName = keyof typeof programs;

export interface MailServer<Start> {
  name: ServerName;
  program: string;
  start: Start;
}

/** `packages`: a directory of unpacked packages that are not installed. */
export function readServerOptions(script: string) {
  const { packages, ...options } = readOptions(`node ${script} [--only NAME]… [--packages DIR] [--json]`, {
    only: { type: 'string', multiple: true, default: [] },
    packages: { type: 'string' },
    json: { type: 'boolean', default: false },
  });
  return { ...options, packages: packages && resolve(packages) };
}

/** `starts`: how each server is started. `only`: the names of those that are wanted; empty: all. */
export function chosenServers<Start>(
  starts: Record<ServerName, Start>,
  only: readonly string[],
): MailServer<Start>[] {
  const names = Object.keys(programs) as ServerName[];
  return names
    .filter((name) => only.length === 0 || only.includes(name))
    .map((name) => ({ name, program: programs[name], start: starts[name] }));
}
