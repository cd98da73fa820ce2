/**
 * Generates parts of the documents from the code: the tables of settings, shaping fields, endpoints, metrics and commands
 * in docs/, the rules of auto-pause, the retry schedule in src/mail/queue/README.md, and the sample config/postern.jsonc. In a document it replaces only
 * the text between `<!-- name -->` and `<!-- /name -->`. With --check it writes nothing, prints the name of each file that
 * is stale, and exits 1 if there is one.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ms from 'ms';
import { commandTable } from '#cli/commands.ts';
import { documentOf } from '#front/api/openapi/openapi-document.ts';
import { allowanceOf, lastStep, minUse, troubles } from '#mail/deliver/warm-up-plan.ts';
import { nextAttemptAt } from '#mail/queue/schedule.ts';
import { pauseRules } from '#mail/record/auto-pause/pause-rules.ts';
import { catalog } from '#operate/metrics/catalog.ts';
import { demands, senderRules } from '#operate/sender-rules/rules.ts';
import { loadConfig, settings } from '#platform/settings/config.ts';
import { shapingFields } from '#platform/settings/shaping-fields.ts';
import { mailboxProviders, providerTitles } from '#platform/values/mailbox-provider.ts';

/** Generated content by file: the tables of a page by their names, or the whole file. */
const documents: Record<string, Record<string, () => string | Promise<string>> | (() => string)> = {
  'docs/settings.md': { settings: settingsTable, shaping: shapingTable },
  'docs/using-the-api.md': { routes: routesTable },
  'docs/metrics.md': { metrics: metricsTable },
  'docs/commands.md': { commands: commandsTable },
  'docs/deliverability.md': { 'sender rules': senderRulesTable, plan: planTable, 'plan-days': planDaysTable },
  'docs/auto-pause.md': { rules: pauseRulesTable },
  'src/mail/queue/README.md': { retry: retryTable },
  'config/postern.jsonc': sample,
};

const root = join(import.meta.dirname, '..');

function settingsTable(): string {
  const rows = settings.map(({ name, default: byDefault, example, description }) => {
    const isWords = example !== undefined && /\s/.test(byDefault);
    return [code(name), isWords ? byDefault : code(byDefault), description];
  });
  return table(['setting', 'default', 'description'], rows);
}

function shapingTable(): string {
  const rows = shapingFields.map(({ name, description }) => [code(name), description]);
  return table(['field', 'description'], rows);
}

function metricsTable(): string {
  const rows = Object.values(catalog).map(({ kind, name, labels, help }) => [
    code(name),
    kind,
    labels.map(code).join(', '),
    help,
  ]);
  return table(['metric', 'kind', 'labels', 'description'], rows);
}

const askedOf = { all: 'all senders', bulk: 'bulk senders', advice: 'recommended', undefined: '' };

function senderRulesTable(): string {
  const rows = demands.map((demand) => {
    const { title, isServers, askedBy } = senderRules[demand];
    const asked: Partial<Record<string, keyof typeof askedOf>> = askedBy;
    return [
      title,
      ...mailboxProviders.map((one) => askedOf[asked[one] ?? 'undefined']),
      isServers ? 'operator' : 'owner',
    ];
  });
  const providers = mailboxProviders.map((one) => providerTitles[one]);
  return table(['demand', ...providers, 'met by'], rows);
}

function routesTable(): string {
  const { paths } = documentOf(() => 'http://localhost')();
  const rows = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { summary, security }]) => {
      const scopes = security.flatMap((one) => Object.values(one).flat());
      return [code(`${method.toUpperCase()} ${path}`), scopes.map(code).join(', ') || 'no key', summary];
    }),
  );
  return table(['endpoint', 'needs one of', 'description'], rows);
}

function pauseRulesTable(): string {
  const rows = Object.entries(pauseRules).map(([name, { label, rate }]) => [
    code(name),
    label,
    rate === null
      ? 'the first'
      : `${Number((rate.share * 100).toFixed(2))}% of at least ${rate.min} mails that are ${rate.of}`,
  ]);
  return table(['rule', 'counts', 'from'], rows);
}

async function commandsTable(): Promise<string> {
  const sections = Map.groupBy(await commandTable(), ({ section }) => section);
  const parts = [...sections].map(([section, commands]) => {
    const rows = commands.map(({ command, description }) => [code(command), description]);
    return `\n## ${section}\n\n${table(['command', 'description'], rows)}`;
  });
  return `${parts.join('')}\n`;
}

/** Computed by the real schedule with a random factor of 0.5, the middle, until it returns no next attempt. */
function retryTable(): string {
  const { mtaRetry: waits, mtaMaxAge: expiresAt } = loadConfig({});
  const rows = [['1', 'at once', '0 s']];
  let [now, next] = [0, nextAttemptAt({ waits, random: () => 0.5 }, { attempts: 1, now: 0, expiresAt })];
  while (next !== null) {
    rows.push([String(rows.length + 1), span(next - now), span(next)]);
    now = next;
    next = nextAttemptAt({ waits, random: () => 0.5 }, { attempts: rows.length, now, expiresAt });
  }
  return table(['attempt', 'wait', 'total time'], rows);
}

/** The days of an address with which all goes well. */
function planTable(): string {
  const steps = Array.from({ length: lastStep }, (_, index) => index + 1);
  const [first, second] = [steps.slice(0, lastStep / 2), steps.slice(lastStep / 2)];
  const cells = (step: number) => [String(step), allowanceOf(step).toLocaleString('en')];
  const rows = first.map((step, index) => [...cells(step), ...cells(second[index]!)]);
  return table(['day', 'allowance', 'day', 'allowance'], rows);
}

function planDaysTable(): string {
  const percent = (part: number) => `${Number((100 * part).toFixed(1))} %`;
  const rows = [
    [`less than ${percent(minUse)} of the allowance was used`, 'the same'],
    ...(['keep', 'back'] as const).map((what) => {
      const { deferred, complained } = troubles[what];
      const trouble = `${percent(deferred)} of the attempts or more were deferred because of the address, or ${percent(complained)} of the mail or more was complained about`;
      return [trouble, what === 'keep' ? 'the same' : 'a step back'];
    }),
    ['anything else', 'a step on'],
  ];
  return table(['of a day', 'the next day'], rows);
}

const sampleHeader = `// Settings of Postern. Copy this file, remove the // before the lines that you want to change, and set POSTERN_CONFIG
// to the path of the copy, for example POSTERN_CONFIG=/etc/postern.jsonc. Without changes this file sets nothing. Any
// setting can also be given in the environment under the same name, which takes precedence over the file.
// \`postern config\` prints the settings in force. Generated by scripts/docs.ts from src/platform/settings/config.ts.
`;

function sample(): string {
  const entries = settings.map(({ name, default: byDefault, example, description }) => {
    const value = literal(example ?? byDefault);
    const words = example === undefined ? '' : `  // Default: ${byDefault}.\n`;
    return `  // ${description}\n${words}  //"${name}": ${value},\n`;
  });
  return `${sampleHeader}{\n${entries.join('  //\n')}}\n`;
}

/** A JSON literal: numbers and booleans without quotes. */
function literal(text: string): string {
  return /^(\d+|true|false)$/.test(text) ? text : JSON.stringify(text);
}

/** Padded in the way Biome formats Markdown; otherwise `npm run fix` would undo its own work. */
function table(head: string[], rows: string[][]): string {
  const widths = head.map((_, column) =>
    Math.max(3, ...[head, ...rows].map((cells) => cells[column]!.length)),
  );
  const rule = widths.map((width) => '-'.repeat(width));
  const padded = [head, rule, ...rows].map((cells) => cells.map((cell, at) => cell.padEnd(widths[at]!)));
  return padded.map((cells) => `| ${cells.join(' | ')} |\n`).join('');
}

/** Backslashes keep a `|` from ending the cell, even within code. */
function code(text: string): string {
  return `\`${text.replaceAll('|', '\\|')}\``;
}

function span(milliseconds: number): string {
  const parts = [
    [Math.floor(milliseconds / ms('1h')), 'h'],
    [Math.floor(milliseconds / ms('1m')) % 60, 'm'],
    [Math.floor(milliseconds / ms('1s')) % 60, 's'],
  ] as const;
  return parts
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ');
}

async function withTables(path: string, tables: Record<string, () => string | Promise<string>>) {
  let text = read(path);
  for (const [name, table] of Object.entries(tables)) text = between(path, text, name, await table());
  return text;
}

function between(path: string, text: string, name: string, content: string): string {
  const [open, close] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const [start, end] = [text.indexOf(open), text.indexOf(close)];
  if (start < 0 || end < start) {
    throw new Error(`${path} has no ${open} followed by ${close}; add both where the table belongs`);
  }
  return `${text.slice(0, start + open.length)}\n${content}${text.slice(end)}`;
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}

async function main(isCheck: boolean): Promise<void> {
  for (const [path, document] of Object.entries(documents)) {
    const content = typeof document === 'function' ? document() : await withTables(path, document);
    if (content === read(path)) continue;
    if (isCheck) {
      console.error(`docs: ${path} is stale; run npm run fix`);
      process.exitCode = 1;
    } else {
      writeFileSync(join(root, path), content);
      console.log(`docs: wrote ${path}`);
    }
  }
}

await main(process.argv.includes('--check'));
