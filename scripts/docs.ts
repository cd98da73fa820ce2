/**
 * Writes what the documents say from the code that makes it true: the tables of settings, shaping fields, routes, metrics
 * and commands in docs/, the retry schedule in src/queue/README.md, and the sample config/postern.jsonc. In a document
 * only the text between `<!-- name -->` and `<!-- /name -->` is touched. With --check it writes nothing, names each file
 * that is stale, and exits 1 if there is one.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ms from 'ms';
import { documentOf } from '../src/api/openapi/openapi-document.ts';
import { commandTable } from '../src/cli/commands.ts';
import { loadConfig, settings } from '../src/config.ts';
import { catalog } from '../src/operate/metrics/catalog.ts';
import { nextAttemptAt } from '../src/queue/schedule.ts';
import { shapingFields } from '../src/settings/shaping-fields.ts';

/** Each file and what it should hold: the tables of a page by their names, or the whole file. */
const documents: Record<string, Record<string, () => string | Promise<string>> | (() => string)> = {
  'docs/settings.md': { settings: settingsTable, shaping: shapingTable },
  'docs/using-the-api.md': { routes: routesTable },
  'docs/metrics.md': { metrics: metricsTable },
  'docs/commands.md': { commands: commandsTable },
  'src/queue/README.md': { retry: retryTable },
  'config/postern.jsonc': sample,
};

const root = join(import.meta.dirname, '..');

function settingsTable(): string {
  const rows = settings.map(({ name, default: byDefault, example, description }) => {
    const isWords = example !== undefined && /\s/.test(byDefault);
    return [code(name), isWords ? byDefault : code(byDefault), description];
  });
  return table(['setting', 'default', 'is'], rows);
}

function shapingTable(): string {
  const rows = shapingFields.map(({ name, is }) => [code(name), is]);
  return table(['field', 'is'], rows);
}

function metricsTable(): string {
  const rows = Object.values(catalog).map(({ kind, name, labels, help }) => [
    code(name),
    kind,
    labels.map(code).join(', '),
    help,
  ]);
  return table(['metric', 'kind', 'labels', 'is'], rows);
}

function routesTable(): string {
  const { paths } = documentOf(() => 'http://localhost')();
  const rows = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { summary, security }]) => {
      const scopes = security.flatMap((one) => Object.values(one).flat());
      return [code(`${method.toUpperCase()} ${path}`), scopes.map(code).join(', ') || 'no key', summary];
    }),
  );
  return table(['route', 'takes one of', 'does'], rows);
}

async function commandsTable(): Promise<string> {
  const commands = await commandTable();
  return table(
    ['command', 'is'],
    commands.map(({ command, is }) => [code(command), is]),
  );
}

/** Asks the queue's own schedule, with the dice in the middle, until it says that there is no next attempt. */
function retryTable(): string {
  const { mtaRetry: waits, mtaMaxAge: expiresAt } = loadConfig({});
  const rows = [['1', 'at once', '0 s']];
  let [now, next] = [0, nextAttemptAt({ waits, random: () => 0.5 }, { attempts: 1, now: 0, expiresAt })];
  while (next !== null) {
    rows.push([String(rows.length + 1), span(next - now), span(next)]);
    now = next;
    next = nextAttemptAt({ waits, random: () => 0.5 }, { attempts: rows.length, now, expiresAt });
  }
  return table(['attempt', 'wait', 'elapsed in all'], rows);
}

const sampleHeader = `// Settings of Postern. To use them: copy this file, take the // from the lines you want to change, and name the
// copy in the environment, as in POSTERN_CONFIG=/etc/postern.jsonc. As it stands it changes nothing. Any setting may
// be in the environment instead, under the same name; there it wins over the file. \`postern config\` prints what
// holds. Written by scripts/docs.ts from src/config.ts.
`;

function sample(): string {
  const entries = settings.map(({ name, default: byDefault, example, description }) => {
    const value = literal(example ?? byDefault);
    const words = example === undefined ? '' : `  // By default: ${byDefault}.\n`;
    return `  // ${description}\n${words}  //"${name}": ${value},\n`;
  });
  return `${sampleHeader}{\n${entries.join('  //\n')}}\n`;
}

/** As JSON would have it: numbers and booleans bare. */
function literal(text: string): string {
  return /^(\d+|true|false)$/.test(text) ? text : JSON.stringify(text);
}

/** Padded as Biome formats Markdown, or `npm run fix` would undo itself. */
function table(head: string[], rows: string[][]): string {
  const widths = head.map((_, column) =>
    Math.max(3, ...[head, ...rows].map((cells) => cells[column]!.length)),
  );
  const rule = widths.map((width) => '-'.repeat(width));
  const padded = [head, rule, ...rows].map((cells) => cells.map((cell, at) => cell.padEnd(widths[at]!)));
  return padded.map((cells) => `| ${cells.join(' | ')} |\n`).join('');
}

/** Backslashes keep the bar of `list | show` from ending the cell, within code too. */
function code(text: string): string {
  return `\`${text.replaceAll('|', '\\|')}\``;
}

function span(milliseconds: number): string {
  const parts = [
    [Math.floor(milliseconds / ms('1h')), 'h'],
    [Math.floor(milliseconds / ms('1m')) % 60, 'm'],
    [Math.floor(milliseconds / ms('1s')) % 60, 's'],
  ] as const;
  const said = parts.filter(([count]) => count > 0).map(([count, unit]) => `${count} ${unit}`);
  return said.join(' ');
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
    throw new Error(`${path} has no ${open} with a ${close} after it; put the two where the table belongs`);
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
