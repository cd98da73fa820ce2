/** `postern credits`: what an organization may still send. Every change is an entry of its ledger. */
import type { Command } from 'commander';
import { iso } from '../../base/clock.ts';
import { grant, type LedgerEntry, listLedger, setQuota } from '../../db/accept/credit-ledger.ts';
import type { Organization } from '../../db/accounts/organizations.ts';
import { movement, type OrUnlimited, quota, toLimit } from '../args/arguments.ts';
import { requireOrganization } from '../args/lookup.ts';
import type { CommandContext } from '../command-context.ts';
import { Failure } from '../failure.ts';
import type { Output } from '../render/output.ts';
import { organizationDocument, organizationFacts, orUnlimited, quotaDocument, quotaFacts } from './org.ts';

/** A terminal is shown the latest; pipes and --json get all. */
const shownOnTerminal = 20;
const all = 2 ** 31 - 1;

export function creditsCommands(program: Command, { db, out, now }: CommandContext): void {
  const credits = program
    .command('credits')
    .description('Manage the quota, wallet and credit ledger of an organization.');

  credits
    .command('show')
    .description('Show the quota, wallet and ledger of an organization, newest entry first.')
    .argument('<ORG>', 'id or name of the organization')
    .action(async (idOrName: string) => {
      const org = await requireOrganization(await db(), idOrName);
      const ledger = await listLedger(await db(), org.id, { limit: all });
      printCredits(out, org, ledger, now());
    });

  credits
    .command('grant')
    .description('Add credits to the wallet; a negative number removes credits.')
    .argument('<ORG>', 'id or name of the organization')
    .argument('<N>', 'number of credits', movement)
    .action(async (idOrName: string, amount: number) => {
      const org = await requireOrganization(await db(), idOrName);
      const changed = await (await db()).transaction((trx) => grant(trx, org.id, amount, now()));
      if (!changed) {
        throw new Failure(
          `the wallet of ${org.name} has ${org.wallet} credits, so ${-amount} cannot be removed; remove at most ${org.wallet}`,
        );
      }
      out.print(organizationDocument(changed, now()), organizationFacts(changed, now()));
    });

  credits
    .command('quota')
    .description('Set the monthly quota; credits already used this month stay used.')
    .argument('<ORG>', 'id or name of the organization')
    .argument('<N|unlimited>', 'credits per month', quota)
    .action(async (idOrName: string, limit: OrUnlimited) => {
      const org = await requireOrganization(await db(), idOrName);
      const changed = await (await db()).transaction((trx) => setQuota(trx, org.id, toLimit(limit), now()));
      out.print(organizationDocument(changed, now()), organizationFacts(changed, now()));
    });
}

function printCredits(out: Output, org: Organization, ledger: LedgerEntry[], now: number): void {
  const entries = ledger.map(({ at, change, reason, balance }) => ({
    at: iso(at),
    change,
    reason,
    balance: orUnlimited(balance),
  }));
  const shown = out.terminal ? ledger.slice(0, shownOnTerminal) : ledger;
  out.print(
    { quota: quotaDocument(org, now), wallet: org.wallet, ledger: entries },
    { facts: quotaFacts(org, now) },
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
