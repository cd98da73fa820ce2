/**
 * `node scripts/pages.ts`: how long each page of the dashboard takes with 100,000 emails, and what a browser fetches that shows it
 * first: the page and its files, compressed. Each page within 150 ms (p95) and under 70 KB; exits with 1 if not.
 *
 *   --past 100000 --waiting 1000      the mails
 */
import { gzipSync } from 'node:zlib';
import { progress, tableOf } from '#lab/load/figures.ts';
import { readOptions, runScript, type Stage } from '#lab/load/stage.ts';
import { startSmtpSink } from '#lab/mx/smtp-sink.ts';
import { type Page, timePage, visitPages } from './backlog/backlog-pages.ts';
import { startSide } from './backlog/backlog-side.ts';

const args = readOptions('node scripts/pages.ts [--past N] [--waiting N]', {
  past: { type: 'string', default: '100000' },
  waiting: { type: 'string', default: '1000' },
});
const maxMs = 150;
const maxBytes = 70_000;

async function measure(stage: Stage): Promise<string[]> {
  const sink = await stage.start(startSmtpSink(stage.directory, ['127.0.1.1']), (it) => it.stop());
  const amounts = {
    past: Number(args.past),
    waiting: Number(args.waiting),
    destinations: 40,
    organizations: 4,
  };
  const { postern } = await startSide(stage, sink, {
    name: 'pages',
    amounts,
    databaseUrl: null,
    settings: {},
  });
  const rows: { name: string; ms: number; bytes: number }[] = [];
  for (const page of await visitPages(postern)) {
    const bytes = await coldBytes(postern.url, page);
    if (bytes !== null) rows.push({ name: page.name, ms: await timePage(page), bytes });
  }
  progress(`${rows.length} pages`);
  const shown = rows.map(({ name, ms, bytes }) => [
    name,
    `${ms.toFixed(0)} ms`,
    `${(bytes / 1000).toFixed(1)} KB`,
  ]);
  console.log(tableOf(['page', 'p95', 'cold'], shown));
  return rows.flatMap(({ name, ms, bytes }) => [
    ...(ms > maxMs ? [`${name} takes ${ms.toFixed(0)} ms`] : []),
    ...(bytes > maxBytes ? [`${name} has ${bytes} bytes`] : []),
  ]);
}

/** Null if it is not a page. */
async function coldBytes(origin: string, { url, headers }: Page): Promise<number | null> {
  const response = await fetch(url, { headers });
  if (!response.headers.get('content-type')?.startsWith('text/html')) {
    await response.body?.cancel();
    return null;
  }
  const html = await response.text();
  const files = [...new Set(html.match(/\/dashboard\/assets\/[^"]+/g))];
  const texts = await Promise.all(files.map(async (file) => (await fetch(origin + file)).bytes()));
  return [html, ...texts].reduce((sum, text) => sum + gzipSync(text).length, 0);
}

const faults = await runScript('pages', measure);
for (const fault of faults) console.error(fault);
process.exit(faults.length === 0 ? 0 : 1);
