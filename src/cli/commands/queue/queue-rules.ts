/**
 * `postern queue slow`, `rule` and `rules`: the operator's rules for destinations and domains, which a running server puts
 * into force within a second. `queue resume` ends a limit before its time.
 */
import type { Command } from 'commander';
import { choice, destination, domain, mailsPerMinute, reason, spanOption } from '#cli/args/arguments.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { findMx } from '#mail/deliver/route/mx.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';
import {
  type DestinationOrder,
  listOrders,
  putRule,
  removeRules,
} from '#mail/queue/rows/destination-rules.ts';
import { countIn } from '#mail/queue/rows/waiting-counts.ts';
import { isKnownDestination, routesOf } from '#mail/record/rows/destination-status-rows.ts';
import { iso, isoOrNull } from '#platform/base/clock.ts';
import { createCurrentShaping } from '#platform/settings/current-shaping.ts';
import { toDomain } from '#platform/values/address.ts';

const defaultReason = 'on the command line';
const reasonIs = 'why, shown by `queue rules`, `queue summary` and `email why`';

interface SlowOptions {
  perMinute: number;
  for: number;
  reason: string;
}

const actions = ['hold', 'bounce', 'none'] as const;

export function ruleCommands(queue: Command, context: CommandContext): void {
  queue
    .command('slow')
    .description('Limit the rate of a destination for one hour, or as long as --for says.')
    .argument('<DESTINATION>', 'a recipient domain, or a destination of `queue summary`', destination)
    .requiredOption('--per-minute <N>', 'mails per minute, spread evenly', mailsPerMinute)
    .addOption(spanOption('--for <TIME>', 'how long; then the limit ends by itself', '1h'))
    .option('--reason <R>', reasonIs, reason, defaultReason)
    .action((name: string, options: SlowOptions) => slow(context, name, options));

  queue
    .command('rule')
    .description('Hold or bounce all mail to a recipient domain from now on, until the rule is removed.')
    .argument('<DOMAIN>', 'the recipient domain', domain)
    .argument(
      `<${actions.join('|')}>`,
      'hold: its mail waits without getting older; bounce: it fails at once; none: remove the rule',
      choice('a rule', actions),
    )
    .option('--reason <R>', reasonIs, reason, defaultReason)
    .action((name: string, action: (typeof actions)[number], options: { reason: string }) =>
      action === 'none' ? removeRule(context, name) : setRule(context, name, action, options.reason),
    );

  queue
    .command('rules')
    .description('List what the operator has suspended, slowed, held or bounced.')
    .action(() => list(context));
}

async function slow(context: CommandContext, name: string, options: SlowOptions): Promise<void> {
  const { db, out, now } = context;
  const served = await destinationNamed(context, name);
  const createdAt = now();
  const until = createdAt + options.for;
  const rule = {
    destination: served,
    kind: 'slow' as const,
    perMinute: options.perMinute,
    reason: options.reason,
    createdAt,
    until,
  };
  await putRule(await db(), rule);
  const fields = {
    slowed: served,
    'per minute': options.perMinute,
    until: { time: until },
    reason: options.reason,
  };
  out.print(documentOf(rule), { fields });
  if (served !== name) out.note(`${name} is served by ${served}: the limit is for all mail to these hosts`);
}

/** The destination that serves a domain: the last one, or for a domain without one, that of its MX hosts. */
export async function destinationNamed({ db, config }: CommandContext, name: string): Promise<string> {
  const last = (await routesOf(await db(), [name])).get(name);
  if (last !== undefined) return last;
  if (toDomain(name) === null || (await isKnownDestination(await db(), name))) return name;
  const { dnsServers } = config();
  const resolve = createResolver(dnsServers);
  const found = await findMx(name, { resolve, allowPrivate: true, random: Math.random });
  // No answer is no MX: the name may be that of a host, and so of a destination.
  if ('result' in found) return name;
  return createCurrentShaping(config(), () => {}).destinationOf(name, found.names).name;
}

async function setRule(
  { db, out, now }: CommandContext,
  name: string,
  kind: 'hold' | 'bounce',
  why: string,
): Promise<void> {
  const rule = { destination: name, kind, perMinute: null, reason: why, createdAt: now(), until: null };
  const waiting = await countIn(await db(), 'waiting', [name]);
  await putRule(await db(), rule);
  const effect = kind === 'hold' ? 'holds' : 'bounces';
  out.print(
    { ...documentOf(rule), waiting },
    {
      fields: {
        domain: name,
        rule: kind,
        [effect]: `${waiting} waiting ${waiting === 1 ? 'mail' : 'mails'}`,
        reason: why,
      },
    },
  );
  out.note(`\`postern queue rule ${name} none\` removes the rule`);
}

async function removeRule({ db, out, now }: CommandContext, name: string): Promise<void> {
  const [removed] = await removeRules(await db(), name, ['hold', 'bounce'], now());
  if (!removed) throw new Failure(`there is no rule for ${name}; \`postern queue rules\` lists the rules`);
  out.print({ removed: documentOf(removed) }, { fields: { removed: removed.kind, domain: name } });
  if (removed.kind === 'hold')
    out.note(`held mail stays held; \`postern queue release --domain ${name} --reason R\` releases it`);
}

async function list({ db, out, now }: CommandContext): Promise<void> {
  const at = now();
  const all = await listOrders(await db(), at);
  out.print(all.map(documentOf), {
    head: ['DESTINATION', 'RULE', 'SINCE', 'UNTIL', 'REASON'],
    rows: all.map((rule) => [
      rule.destination,
      rule.perMinute === null ? rule.kind : `${rule.kind} to ${rule.perMinute} a minute`,
      { time: rule.createdAt, past: true },
      rule.until === null ? 'removed' : { time: rule.until },
      rule.reason,
    ]),
    empty: 'There are no rules.',
    cut: 'last',
  });
}

export function documentOf({
  destination: name,
  kind,
  perMinute,
  reason: why,
  createdAt,
  until,
}: DestinationOrder) {
  return {
    destination: name,
    rule: kind,
    perMinute,
    reason: why,
    createdAt: iso(createdAt),
    until: isoOrNull(until),
  };
}
