/** Settings that contradict each other although each is valid by itself. The message names one of them. */
import { longDuration } from './durations.ts';

const everyRole = 3;

interface Issues {
  addIssue(issue: { code: 'custom'; path: string[]; message: string }): void;
}

/** A node without all roles needs other nodes, and therefore a database that they can reach. */
export function refuseRolesAlone(
  { roles, databaseUrl }: { roles: string[]; databaseUrl: string | null },
  context: Issues,
): void {
  if (databaseUrl !== null || roles.length === everyRole) return;
  const message =
    `"${roles.join(' ')}" leaves the other roles to other nodes, which SQLite does not support; ` +
    'set POSTERN_DATABASE_URL to a PostgreSQL database, or leave POSTERN_ROLES out';
  context.addIssue({ code: 'custom', path: ['roles'], message });
}

/** The authority must be able to ask at least one of the ports. */
export function refuseAcmeWithoutPort(
  config: { acme: string | null; acmeHttpPort: number | null; acmeHttpsPort: number | null },
  context: Issues,
): void {
  if (config.acme === null || config.acmeHttpPort !== null || config.acmeHttpsPort !== null) return;
  const message =
    'the authority asks at POSTERN_ACME_HTTP_PORT or POSTERN_ACME_HTTPS_PORT, and both are off; give one of them';
  context.addIssue({ code: 'custom', path: ['acme'], message });
}

/** A node that leaves its addresses to the system has no pools. */
export function refuseUnknownWarmUpPool(
  { warmUp, mtaSources }: { warmUp: string | { pool: string }; mtaSources: { pool: string }[] },
  context: Issues,
): void {
  if (typeof warmUp === 'string' || mtaSources.length === 0) return;
  const pools = new Set(mtaSources.map(({ pool }) => pool));
  if (pools.has(warmUp.pool)) return;
  const known = [...pools].map((pool) => `@${pool}`).join(' or ');
  const message = `"@${warmUp.pool}" is a pool that POSTERN_MTA_SOURCES has no address of; give ${known}, or wait`;
  context.addIssue({ code: 'custom', path: ['warmUp'], message });
}

/** The retention of rows that refer to an email. */
const retentions = {
  keepEvents: 'POSTERN_KEEP_EVENTS',
  keepMessages: 'POSTERN_KEEP_MESSAGES',
  idempotencyKeep: 'POSTERN_IDEMPOTENCY_KEEP',
} as const;

/** An email must be kept at least as long as its events, its message and the response for its idempotency key. */
export function refuseShortEmailRetention(
  config: Record<keyof typeof retentions, number> & { keepEmails: number | null },
  context: Issues,
): void {
  const { keepEmails } = config;
  if (keepEmails === null) return;
  for (const key of Object.keys(retentions) as (keyof typeof retentions)[]) {
    if (config[key] <= keepEmails) continue;
    const [given, other] = [keepEmails, config[key]].map(longDuration.print);
    const message = `"${given}" is less than ${retentions[key]} (${other}), and what is kept that long refers to its email; give a time at least as long`;
    context.addIssue({ code: 'custom', path: ['keepEmails'], message });
  }
}
