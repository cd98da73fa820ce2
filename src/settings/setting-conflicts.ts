/** Settings that do not go together: each is fine by itself, and the fault is told of one of them. */
import { longDuration } from './durations.ts';

const everyRole = 3;

interface Issues {
  addIssue(issue: { code: 'custom'; path: string[]; message: string }): void;
}

/** Whoever leaves something to other nodes needs a database that other nodes can reach. */
export function refuseRolesAlone(
  { roles, databaseUrl }: { roles: string[]; databaseUrl: string | null },
  context: Issues,
): void {
  if (databaseUrl !== null || roles.length === everyRole) return;
  const message =
    `"${roles.join(' ')}" leaves the rest to other nodes, and SQLite has none; ` +
    'name a PostgreSQL in POSTERN_DATABASE_URL, or leave POSTERN_ROLES out';
  context.addIssue({ code: 'custom', path: ['roles'], message });
}

/** What tells of emails. */
const storied = {
  keepEvents: 'POSTERN_KEEP_EVENTS',
  keepMessages: 'POSTERN_KEEP_MESSAGES',
  idempotencyKeep: 'POSTERN_IDEMPOTENCY_KEEP',
};

/** Events tell of their emails, and so do the answers that repeated sends get. */
export function refuseShortStories(
  config: Record<keyof typeof storied, number> & { keepEmails: number | null },
  context: Issues,
): void {
  const { keepEmails } = config;
  if (keepEmails === null) return;
  for (const [key, name] of Object.entries(storied)) {
    if (config[key as keyof typeof storied] <= keepEmails) continue;
    const [mine, other] = [keepEmails, config[key as keyof typeof storied]].map((value) =>
      longDuration.print(value),
    );
    const message = `"${mine}" is less than ${name} (${other}), and what is kept for that tells of its email; name a time at least as long`;
    context.addIssue({ code: 'custom', path: ['keepEmails'], message });
  }
}
