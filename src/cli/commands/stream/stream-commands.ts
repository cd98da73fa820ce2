/** `postern stream`: the streams of an organization's mail. */
import type { Command } from 'commander';
import { alterStream, deleteStream, makeStream, streamDocument } from '#accounts/manage-streams.ts';
import { listStreams, type Stream, type StreamSettings } from '#accounts/rows/streams.ts';
import { choice, limit, name, type OrUnlimited, parser, pool, toLimit } from '#cli/args/arguments.ts';
import { addConsent, type Consent, isWanted } from '#cli/args/consent.ts';
import { type OwnerOption, requireOwner, withOwner } from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { asFailure } from '#cli/failure.ts';
import { oneOf, refuse } from '#platform/settings/grammar.ts';
import {
  defaultStream,
  isStreamName,
  type StreamKind,
  streamKinds,
  streamNameForm,
} from '#platform/values/stream.ts';

export const streamName = parser((text) =>
  isStreamName(text) ? text : refuse(text, 'the name of a stream', streamNameForm),
);

const noneOf = 'default';
const color = parser((text) =>
  text === noneOf || /^#[0-9a-f]{6}$/i.test(text) ? text : refuse(text, 'a color', 'one such as #1a73e8'),
);
const switchOr = parser(oneOf('a switch', ['on', 'off', noneOf]).read);

interface Options extends OwnerOption {
  title?: string;
  kind?: StreamKind;
  pool?: string;
  opens?: 'on' | 'off' | 'default';
  clicks?: 'on' | 'off' | 'default';
  emailsPerDay?: OrUnlimited;
  color?: string;
}

export function streamCommands(program: Command, context: CommandContext): void {
  const stream = program
    .command('stream')
    .description(
      `Manage streams: parts of an organization's mail with settings and suppressions of their own.`,
    );

  withSettings(stream.command('create').argument('<NAME>', 'name that a send or a key gives', streamName))
    .description('Create a stream.')
    .action((named: string, options: Options) => create(context, named, options));

  withSettings(stream.command('set').argument('<NAME>', 'name of the stream', streamName))
    .description('Change the settings of a stream; without any option, print it.')
    .action((named: string, options: Options) => change(context, named, options));

  withOwner(stream.command('list'))
    .description('List the streams of an organization.')
    .action(({ org }: OwnerOption) => list(context, org));

  addConsent(
    withOwner(stream.command('remove').argument('<NAME>', 'name of the stream', streamName)).description(
      'Remove a stream; what it has suppressed stays for a stream of the same name.',
    ),
  ).action((named: string, { org, ...consent }: OwnerOption & Consent) =>
    remove(context, named, org, consent),
  );
}

function withSettings(command: Command): Command {
  return withOwner(command)
    .option('--title <T>', 'name that recipients see on the page where they unsubscribe', name)
    .option(
      '--kind <K>',
      'transactional, or subscribed: each email has a link to unsubscribe with one click',
      choice('a kind of stream', streamKinds),
    )
    .option('--pool <POOL>', "IP pool that its mail leaves from; default: the organization's", pool)
    .option('--opens <on|off|default>', "count opens; default: as the sender's domain does", switchOr)
    .option('--clicks <on|off|default>', "count clicks; default: as the sender's domain does", switchOr)
    .option('--emails-per-day <N>', 'recipients per day, or unlimited', limit)
    .option('--color <#RRGGBB>', 'color of the page where recipients unsubscribe; default: ours', color);
}

function settingsOf(options: Options): Partial<StreamSettings> {
  const { title, kind, opens, clicks, emailsPerDay } = options;
  const orNull = <Text extends string>(value: Text | undefined) =>
    value === noneOf ? null : (value as Exclude<Text, typeof noneOf> | undefined);
  const flagOf = (value: Options['opens']) =>
    value === undefined || value === noneOf ? orNull(value) : value === 'on';
  const given = {
    title,
    kind,
    pool: orNull(options.pool),
    openTracking: flagOf(opens),
    clickTracking: flagOf(clicks),
    emailsPerDay: emailsPerDay === undefined ? undefined : toLimit(emailsPerDay),
    color: orNull(options.color),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

async function create(context: CommandContext, named: string, options: Options): Promise<void> {
  const { id: orgId } = await requireOwner(context, options.org);
  const wanted = { orgId, name: named, ...settingsOf(options) };
  print(context, await makeStream(await context.db(), wanted, context.now()).catch(asFailure));
}

async function change(context: CommandContext, named: string, options: Options): Promise<void> {
  const { id: orgId } = await requireOwner(context, options.org);
  const stream = { orgId, name: named };
  print(context, await alterStream(await context.db(), stream, settingsOf(options)).catch(asFailure));
}

async function list(context: CommandContext, org: string | undefined): Promise<void> {
  const { id } = await requireOwner(context, org);
  const streams = await listStreams(await context.db(), id);
  context.out.print(streams.map(streamDocument), {
    head: ['NAME', 'KIND', 'POOL', 'PER DAY', 'TITLE'],
    rows: streams.map(({ name: called, kind, pool: from, emailsPerDay, title }) => [
      called,
      kind,
      from ?? '-',
      emailsPerDay === null ? 'unlimited' : String(emailsPerDay),
      title,
    ]),
    empty: `There is no stream: all mail is in ${defaultStream}; \`postern stream create NAME\` creates one.`,
  });
}

async function remove(
  context: CommandContext,
  named: string,
  org: string | undefined,
  consent: Consent,
): Promise<void> {
  const { id: orgId, name: owner } = await requireOwner(context, org);
  const fields = { stream: named, organization: owner };
  const effect = { question: `remove the stream ${named} of ${owner}`, fields, document: fields };
  if (!(await isWanted(context, effect, consent))) return;
  await deleteStream(await context.db(), { orgId, name: named }).catch(asFailure);
  context.out.print({ removed: named }, { fields: { removed: named } });
}

function print({ out }: CommandContext, stream: Stream): void {
  const {
    name: called,
    title,
    kind,
    pool: from,
    openTracking,
    clickTracking,
    emailsPerDay,
    color: shown,
  } = stream;
  const switched = (value: boolean | null) =>
    value === null ? "as the sender's domain" : value ? 'on' : 'off';
  out.print(streamDocument(stream), {
    fields: {
      stream: called,
      title,
      kind,
      pool: from ?? "the organization's",
      opens: switched(openTracking),
      clicks: switched(clickTracking),
      'emails per day': emailsPerDay === null ? 'unlimited' : String(emailsPerDay),
      ...(shown && { color: shown }),
    },
  });
}
