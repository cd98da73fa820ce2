/** `postern org remove`: deletes an organization with all its data, once none of its mail is being sent. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { pauseOrganization } from '#accounts/rows/pauses.ts';
import {
  countContents,
  countSending,
  type OrganizationContents,
  removeOrganization,
} from '#accounts/rows/remove-organization.ts';
import { addConsent, type Consent, isWanted } from '#cli/args/consent.ts';
import { requireOrganization } from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { deleteEmails } from '#mail/record/rows/forget-emails.ts';

/** All nodes have read that it is paused (mail/queue/cluster/pool-assignment.ts), and what they were accepting is committed. */
const settleMs = 3000;
const lookMs = 500;

export function removeCommand(command: Command, context: CommandContext): void {
  addConsent(command).action((idOrName: string, consent: Consent) => remove(context, idOrName, consent));
}

async function remove(context: CommandContext, idOrName: string, consent: Consent): Promise<void> {
  const { out, now } = context;
  const db = await context.db();
  const { id, name } = await requireOrganization(db, idOrName);
  const contents = await countContents(db, id);
  const effect = {
    question: `remove ${name} permanently, with ${inWords(contents)}`,
    fields: { organization: name, ...contents },
    document: { id, name, ...contents },
    isForGood: true,
  };
  if (!(await isWanted(context, effect, consent))) return;
  await pauseOrganization(db, id, { since: now(), reason: 'The organization is being removed.' });
  if (await context.isServed()) await waitUntilIdle(context, id);
  await removeOrganization(db, id, {
    deleteEmails,
    onProgress: (emails) => out.progress(`${emails} of ${contents.emails} emails deleted`),
  });
  out.print({ id, name, removed: true, ...contents }, { fields: { removed: name, ...contents } });
  out.note('the mail log still names its mail until its files are deleted');
}

async function waitUntilIdle({ db, out }: CommandContext, id: string): Promise<void> {
  out.progress('waiting for the servers to let go of its mail');
  await sleep(settleMs);
  for (
    let count = await countSending(await db(), id);
    count > 0;
    count = await countSending(await db(), id)
  ) {
    out.progress(`waiting for ${count} mails that are being sent`);
    await sleep(lookMs);
  }
}

function inWords({ emails, waiting, keys, domains, users }: OrganizationContents): string {
  const parts = [
    [emails, 'email'],
    [keys, 'key'],
    [domains, 'domain'],
    [users, 'user'],
  ] as const;
  const counted = parts.map(([count, noun]) => `${count} ${noun}${count === 1 ? '' : 's'}`).join(', ');
  return waiting > 0 ? `${counted} (${waiting} deliveries still wait and are dropped)` : counted;
}
