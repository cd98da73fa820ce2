/** `postern credits`: quota, wallet and ledger of an organization. Every change is an entry of the ledger. */
import type { Command } from 'commander';
import { grant, listLedger, setQuota } from '#accounts/rows/credit-ledger.ts';
import { movement, type OrUnlimited, quota, toLimit } from '#cli/args/arguments.ts';
import { requireOrganization } from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { orUnlimited, printOrganization, quotaDocument, quotaFields } from '#cli/render/org-view.ts';
import { iso } from '#platform/base/clock.ts';

/** Entries that a terminal shows; pipes and --json get all. */
const shownOnTerminal = 20;
const all = 2 ** 31 - 1;

export function creditsCommands(program: Command, context: CommandContext): void {
  const { db, now } = context;
  const credits = program
    .command('credits')
    .description('Manage the quota, wallet and credit ledger of an organization.');
  const ofOrg = (command: string, description: string) =>
    credits.command(command).description(description).argument('<ORG>', 'id or name of the organization');

  ofOrg('show', 'Show the quota, wallet and ledger of an organization, newest entry first.').action(
    (idOrName: string) => show(context, idOrName),
  );

  ofOrg('grant', 'Add credits to the wallet; a negative number removes credits.')
    .argument('<N>', 'number of credits', movement)
    .action(async (idOrName: string, amount: number) => {
      const org = await requireOrganization(await db(), idOrName);
      const changed = await (await db()).transaction((trx) => grant(trx, org.id, amount, now()));
      if (!changed) {
        throw new Failure(
          `the wallet of ${org.name} has ${org.wallet} credits, so ${-amount} cannot be removed; remove at most ${org.wallet}`,
        );
      }
      printOrganization(context, changed);
    });

  ofOrg('quota', 'Set the monthly quota; credits already used this month stay used.')
    .argument('<N|unlimited>', 'credits per month', quota)
    .action(async (idOrName: string, limit: OrUnlimited) => {
      const { id } = await requireOrganization(await db(), idOrName);
      const changed = await (await db()).transaction((trx) => setQuota(trx, id, toLimit(limit), now()));
      printOrganization(context, changed);
    });
}

async function show({ db, out, now }: CommandContext, idOrName: string): Promise<void> {
  const org = await requireOrganization(await db(), idOrName);
  const ledger = await listLedger(await db(), org.id, { limit: all });
  const entries = ledger.map(({ at, change, reason, balance }) => ({
    at: iso(at),
    change,
    reason,
    balance: orUnlimited(balance),
  }));
  const shown = out.terminal ? ledger.slice(0, shownOnTerminal) : ledger;
  out.print(
    { quota: quotaDocument(org, now()), wallet: org.wallet, ledger: entries },
    { fields: quotaFields(org, now()) },
    {
      head: ['AT', 'CHANGE', 'BALANCE', 'REASON'],
      rows: shown.map(({ at, change, reason, balance }) => [
        { time: at },
        change,
        orUnlimited(balance),
        reason,
      ]),
      empty: 'The ledger is empty.',
    },
  );
  if (shown.length < ledger.length)
    out.note(`${ledger.length - shown.length} older entries; --json prints them all`);
}
