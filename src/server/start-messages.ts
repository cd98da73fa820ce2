/** The messages that the process prints for a person at its start: the first steps, or why it could not start. */
import { SealError } from '#accounts/seal.ts';
import { ListenError } from '#platform/base/net/tcp-listen.ts';
import { DatabaseError } from '#platform/database/engine/open.ts';
import { ConfigError } from '#platform/settings/config-error.ts';

/** `postern`: how the command is called in this installation. */
export const firstSteps = (postern: string) => [
  'No organization yet. Next, in another terminal:',
  `  ${postern} org create --name Acme`,
  `  ${postern} domain add example.com --org Acme     (then publish the records it prints)`,
  `  ${postern} domain verify example.com --org Acme`,
  `  ${postern} key create --org Acme --label app --scope email:send --scope email:read`,
  'README.md goes on from there. Without a domain: npm run dev (or postern dev) shows each mail of your application.',
];

/** The message alone if the operator can act on it; otherwise the stack, because it is an error of the program. */
export function describeStartError(error: NodeJS.ErrnoException): string {
  const expected = [ConfigError, DatabaseError, ListenError, SealError];
  const isForOperator = error.code !== undefined || expected.some((kind) => error instanceof kind);
  const advice = error.code === 'ENOSPC' ? '; free some disk space for POSTERN_DATA_DIR' : '';
  return `${isForOperator ? error.message : error.stack}${advice}`;
}
