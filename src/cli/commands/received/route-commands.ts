/** `postern route`: receiving routes, which say what becomes of mail that comes in for a domain that receives. */
import type { Command } from 'commander';
import { choice, parser } from '#cli/args/arguments.ts';
import { addConsent, type Consent, isWanted } from '#cli/args/consent.ts';
import { type OwnerOption, requireOwner, requireRoute, requireWebhook, withOwner } from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { presentRoute } from '#front/api/receiving-routes/routes.ts';
import { checkAddress, outcomeOf } from '#mail/received/check-address.ts';
import { addRoute, changeRoute, maxPriority, minLargest } from '#mail/received/define-route.ts';
import {
  dmarcChoices,
  maxReceivedBytes,
  type ReceivingRoute,
  receivingActions,
} from '#mail/received/received-mail.ts';
import { defaultReply } from '#mail/received/reject-reply.ts';
import { deleteRoute, listRoutes } from '#mail/received/rows/receiving-routes.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { byteSize, refuse, wholeNumber } from '#platform/settings/grammar.ts';

const action = choice('an action', receivingActions);
const dmarc = choice('an answer to a failed DMARC', dmarcChoices);
const priority = parser(wholeNumber('a priority', 0, maxPriority).read);
const largest = parser((text) => {
  const size = byteSize.read(text);
  if (size >= minLargest && size <= maxReceivedBytes) return size;
  return refuse(text, 'a size', 'one from 1K to 25M');
});

export function routeCommands(program: Command, context: CommandContext): void {
  const route = program
    .command('route')
    .description('Manage receiving routes, which say what becomes of mail that comes in.');

  withMembers(
    withOwner(route.command('add'))
      .description(
        'Add a route for addresses of a domain that receives mail; the first that takes an address decides.',
      )
      .argument('<PATTERN>', patterns)
      .requiredOption('--action <A>', actions, action),
  ).action((pattern: string, options: AddOptions) => add(context, pattern, options));

  withMembers(
    route
      .command('change')
      .description(
        'Change a route; what is not given stays. Another action has the default webhook and reply unless they are given.',
      )
      .argument('<ID>', 'id of the route, or its end')
      .option('--pattern <PATTERN>', patterns)
      .option('--action <A>', actions, action),
  ).action((id: string, options: Partial<MemberOptions>) => change(context, id, options));

  withOwner(route.command('list').description('List the routes of an organization, in their order.')).action(
    ({ org }: OwnerOption) => list(context, org),
  );

  route
    .command('show')
    .description('Show a route.')
    .argument('<ID>', 'id of the route, or its end')
    .action((id: string) => show(context, id));

  addConsent(
    route
      .command('remove')
      .description('Delete a route; mail that it took is kept.')
      .argument('<ID>', 'id of the route, or its end'),
  ).action((id: string, consent: Consent) => remove(context, id, consent));

  withOwner(
    route
      .command('check')
      .description('Show which route would take an address; exit with 1 if its mail would be refused.')
      .argument('<ADDRESS>', 'address of a recipient'),
  ).action((address: string, { org }: OwnerOption) => check(context, address, org));
}

const patterns = "orders@example.com, orders+*@example.com, example.com, or '/[0-9]+/@example.com' (RE2)";
const actions = `one of ${receivingActions.join(', ')}`;

const withMembers = (command: Command) =>
  command
    .option(
      '--webhook <ID|all>',
      'webhook that the mail is posted to; all: those that subscribe to it (default)',
    )
    .option('--reply <TEXT>', `what a rejected sender is told; by default "${defaultReply}"`)
    .option('--priority <N>', 'lower comes first; by default, the narrower pattern does', priority)
    .option('--dmarc <A>', `mail that fails a DMARC policy of reject: ${dmarcChoices.join(' or ')}`, dmarc)
    .option('--largest <SIZE>', 'size of the largest mail', largest);

interface MemberOptions {
  pattern?: string;
  action: ReceivingRoute['action'];
  webhook?: string;
  reply?: string;
  priority?: number;
  dmarc?: ReceivingRoute['dmarc'];
  largest?: number;
}

type AddOptions = MemberOptions & OwnerOption;

async function add(
  context: CommandContext,
  pattern: string,
  { org, webhook, ...options }: AddOptions,
): Promise<void> {
  const db = await context.db();
  const { id: orgId } = await requireOwner(context, org);
  const request = { ...options, pattern, webhookId: await webhookIdOf(db, webhook) };
  const route = await addRoute(db, orgId, request, context.now());
  print(context, route);
  const { result, reason } = await checkAddress(db, orgId, `x@${route.domain}`);
  if (result === 'not_receiving') context.out.note(reason);
}

async function change(
  context: CommandContext,
  id: string,
  { webhook, ...options }: Partial<MemberOptions>,
): Promise<void> {
  const db = await context.db();
  const route = await requireRoute(db, id);
  const changes = { ...options, webhookId: await webhookIdOf(db, webhook) };
  print(context, await changeRoute(db, route, changes, context.now()));
}

/** Undefined if none is given; null: all that subscribe. */
async function webhookIdOf(db: Db, given: string | undefined): Promise<string | null | undefined> {
  return given === 'all' ? null : given && (await requireWebhook(db, given)).id;
}

function print({ out }: CommandContext, route: ReceivingRoute): void {
  const { id, pattern, action: becomes, priority: order, webhookId, reply } = route;
  const fields = {
    id,
    pattern,
    action: becomes,
    priority: order,
    ...(webhookId !== null && { webhook: webhookId }),
    ...(reply !== null && { reply }),
    'DMARC failed': route.dmarc,
    ...(route.largest !== null && { largest: byteSize.print(route.largest) }),
    created: { time: route.createdAt, past: true },
  };
  out.print(presentRoute(route), { fields });
}

async function list(context: CommandContext, org: string | undefined): Promise<void> {
  const { id: orgId } = await requireOwner(context, org);
  const routes = await listRoutes(await context.db(), orgId);
  context.out.print(routes.map(presentRoute), {
    head: ['ID', 'PRIORITY', 'PATTERN', 'ACTION', 'MAIL IS'],
    rows: routes.map((route) => [
      { id: route.id },
      route.priority,
      route.pattern,
      route.action,
      outcomeOf(route),
    ]),
    empty: "There is no route yet; `postern route add '*@DOMAIN' --action store` adds one.",
    cut: 'last',
  });
}

async function show(context: CommandContext, id: string): Promise<void> {
  print(context, await requireRoute(await context.db(), id));
}

async function remove(context: CommandContext, idOrEnd: string, consent: Consent): Promise<void> {
  const { id, pattern } = await requireRoute(await context.db(), idOrEnd);
  const effect = {
    question: `delete the route ${pattern}`,
    fields: { route: pattern },
    document: { id, pattern },
  };
  if (!(await isWanted(context, effect, consent))) return;
  await deleteRoute(await context.db(), id);
  context.out.print({ id, removed: true }, { fields: { removed: pattern } });
}

async function check(context: CommandContext, address: string, org: string | undefined): Promise<void> {
  const { id: orgId } = await requireOwner(context, org);
  const { result, reason, route } = await checkAddress(await context.db(), orgId, address);
  const fields = { address, result, reason, ...(route && { route: route.id }) };
  context.out.print({ address, result, reason, route: route && presentRoute(route) }, { fields });
  if (route === null || result === 'reject') context.exitCode = 1;
}
