/** `postern open`: a link that signs an operator in to the dashboard, for who can read the data of the server anyway. */
import type { Command } from 'commander';
import { makeUserLink } from '#accounts/people/people.ts';
import { findUserByEmail, firstOperator } from '#accounts/rows/users.ts';
import { address } from '#cli/args/arguments.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { iso } from '#platform/base/clock.ts';

export function openCommand(program: Command, context: CommandContext): void {
  program
    .command('open')
    .description('Print a link that signs you in to the dashboard, once, within ten minutes.')
    .option('--email <E>', 'user to sign in as; by default the operator that was added first', address)
    .action(({ email }: { email?: string }) => open(context, email));
}

async function open({ db, out, config, now }: CommandContext, email: string | undefined): Promise<void> {
  const named = email ?? (await firstOperator(await db()));
  const user = named === null ? null : await findUserByEmail(await db(), named);
  if (user === null || user.disabledAt !== null) {
    const who = email === undefined ? 'there is no operator' : `no user with ${email} can sign in`;
    throw new Failure(`${who}; \`postern user create --operator --email E\` makes one`);
  }
  // Without a password, the user could not sign in again.
  const purpose = user.passwordHash === null ? 'invitation' : 'open';
  const { path, expiresAt } = await makeUserLink(await db(), user, purpose, now());
  const url = config().baseUrl + path;
  out.print(
    { email: user.email, url, expiresAt: iso(expiresAt) },
    { fields: { email: user.email, link: url, until: { time: expiresAt } } },
  );
}
