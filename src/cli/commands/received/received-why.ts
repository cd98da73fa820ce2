/**
 * `postern received why`: what becomes of mail for an address, in the order in which the server decides: whether mail for the
 * domain comes here, which organization receives it, which route takes it, and what was received of late.
 */
import type { Command } from 'commander';
import { checkRecords, isUnknown } from '#accounts/check-records.ts';
import { recordsFor } from '#accounts/domains.ts';
import { findDomain } from '#accounts/rows/domains-table.ts';
import { findOrganization } from '#accounts/rows/organizations.ts';
import { findReceivingDomain } from '#accounts/rows/receiving-domains.ts';
import { address as addressArgument } from '#cli/args/arguments.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { sanitize } from '#cli/render/output.ts';
import { receivedDocument, verdictsText } from '#cli/render/received-view.ts';
import { local } from '#cli/render/times.ts';
import { wrap } from '#cli/render/width.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';
import { checkAddress } from '#mail/received/check-address.ts';
import type { ReceivedMail } from '#mail/received/received-mail.ts';
import { storedBytes } from '#mail/received/rows/received-mails.ts';
import { searchReceived } from '#mail/received/rows/search-received.ts';
import { byteSize } from '#platform/settings/grammar.ts';
import { domainOf } from '#platform/values/address.ts';

const maxMails = 5;

export function whyCommand(received: Command, context: CommandContext): void {
  received
    .command('why')
    .description(
      'Explain what becomes of mail for an address; exit with 1 if it is refused or does not arrive.',
    )
    .argument('<ADDRESS>', 'address of a recipient', addressArgument)
    .action((address: string) => why(context, address));
}

async function why(context: CommandContext, address: string): Promise<void> {
  const { db: open, out, config } = context;
  const db = await open();
  const name = domainOf(address)!;
  const domain = await findReceivingDomain(db, name);
  const owner = domain && (await findOrganization(db, domain.orgId));
  if (!domain || !owner) {
    const reason = `No organization of this server receives mail for ${name}, so it is refused. \`postern domain receive ${name} on\` turns it on.`;
    return print(context, { address, result: 'not_receiving', reasons: [reason], mails: [] });
  }
  const { result, reason } = await checkAddress(db, domain.orgId, address);
  const used = await storedBytes(db, domain.orgId);
  const isFull = used >= config().receivedStore;
  const { mails } = await searchReceived(db, { orgId: domain.orgId, to: address, limit: maxMails });
  const full = `The received mail of ${owner.name} takes ${used} bytes of ${byteSize.print(config().receivedStore)}, so more is deferred (452) until the oldest is deleted.`;
  const dns = await recordProblem(context, domain);
  const reasons = [
    ...(dns === null ? [] : [dns]),
    domain.status === 'verified'
      ? `${owner.name} receives the mail for ${name}.`
      : `${owner.name} receives the mail for ${name}, but its DKIM record is gone: mail is deferred (451) until it is found.`,
    reason,
    ...(isFull ? [full] : []),
    mails.length === 0
      ? 'Nothing of late was received for it. A sender that was refused was told so; the log of the server names it.'
      : `The last that was received for it:`,
  ];
  print(context, { address, result, reasons, mails, isTrouble: isFull || dns !== null });
  if (!out.json && result === 'not_receiving') out.note(`\`postern domain show ${name}\` has its records`);
}

/** Null: mail for the domain comes here. */
async function recordProblem(
  { db, config }: CommandContext,
  { orgId, name }: { orgId: string; name: string },
): Promise<string | null> {
  const domain = await findDomain(await db(), orgId, name);
  const wanted = recordsFor(domain!, config()).filter(({ purpose }) => purpose === 'receiving');
  const [record] = await checkRecords(wanted, createResolver(config().dnsServers));
  if (!record) return 'This server takes no mail: set POSTERN_INBOUND_PORT=25.';
  if (record.ok) return null;
  if (isUnknown(record)) return `The MX record of ${name} could not be looked up: ${record.found.join()}.`;
  return (
    record.problem ?? `${name} has no MX record, so no mail for it comes here. Publish MX ${record.value}.`
  );
}

interface Explanation {
  address: string;
  result: string;
  reasons: string[];
  mails: ReceivedMail[];
  /** Mail does not arrive, whatever the route. */
  isTrouble?: boolean;
}

function print(context: CommandContext, { address, result, reasons, mails, isTrouble = false }: Explanation) {
  const { out } = context;
  const last = mails.map(
    ({ id, at, sender, summary }) =>
      `${local(at)}  ${id}  from ${sanitize(sender || '<>')}  ${verdictsText(summary)}`,
  );
  const block = {
    lines: [
      `${address}  ${result}`,
      ...reasons.flatMap((reason) => wrap(sanitize(reason).split(' '), out.columns)),
      ...last,
    ],
    rows: [...reasons, ...last].map((text) => ['address', address, text]),
  };
  out.print({ address, result, reasons, mails: mails.map(receivedDocument) }, block);
  const isRefused = ['not_receiving', 'no_route', 'reject'].includes(result);
  if (isRefused || isTrouble) context.exitCode = 1;
}
