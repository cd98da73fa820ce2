/** What an earlier run of `postern init`, or the use of this server since, has left in its database. */
import { firstDomain, hasAcceptedMail } from '#accounts/rows/set-up-progress.ts';
import { firstOperator } from '#accounts/rows/users.ts';
import { type CommandContext, createCommandContext } from '#cli/command-context.ts';
import { serviceFile } from '#platform/settings/env-file.ts';
import type { Answers } from './answers.ts';

export interface EarlierRun {
  known: Partial<Answers>;
  /** The name of the server is in the Message-IDs and return paths of that mail. */
  hasSentMail: boolean;
}

/** As root for a service: SQLite gives the files that it makes beside a database to the database's owner. */
export async function readEarlierRun(context: CommandContext, isService: boolean): Promise<EarlierRun> {
  const { stdin, stdout, stderr, env, once } = context.process;
  const own = isService ? { ...env, POSTERN_ENV_FILE: serviceFile } : env;
  const probe = createCommandContext({ stdin, stdout, stderr, env: own, once }, context);
  try {
    const db = await probe.db();
    const domain = (await firstDomain(db))?.name;
    const email = await firstOperator(db);
    return {
      known: { ...(domain !== undefined && { domain }), ...(email !== null && { email }) },
      hasSentMail: await hasAcceptedMail(db),
    };
  } catch {
    return { known: {}, hasSentMail: false };
  } finally {
    await probe.close();
  }
}
