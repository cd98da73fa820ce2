/** The defaults of settings that depend on the machine, or that are nothing. */
import { hostname } from 'node:os';
import { join } from 'node:path';
import { asHostName } from '#platform/values/host-name.ts';

export const none = () => null;

/** Does not depend on the working directory, so that a command finds the same data from anywhere. */
export const dataBesideProgram = () => join(import.meta.dirname, '../../../data');

export const systemServers = (): string[] => [];

export const noSources = () => [];

/** A name of one label is allowed, because many machines have no other; a name that EHLO does not allow is not. */
export const machineName = () => asHostName(hostname()) ?? 'localhost';

export const terminalFormat = () => (process.stdout.isTTY ? 'pretty' : 'json');
