/**
 * A real browser, out of an npm package: started once for a process, when the first test needs it; each test has a context of
 * its own. What a page says on its console, and what its content policy blocks, is kept, and is a fault.
 *
 *   const { visit } = startChromium(test);
 *   const { page, faults, check } = await visit(t, world, 'phone');
 */
import { readFileSync } from 'node:fs';
import chromium from '@sparticuz/chromium';
import type { ExecutionContext, TestFn } from 'ava';
import { type Browser, type Page, chromium as playwright } from 'playwright-core';
import { keepOthersWaiting } from '../alone.ts';
import type { World } from '../scenes/world.ts';
import { chromiumProgram } from './chromium-program.ts';

export const sizes = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } } as const;

export type Size = keyof typeof sizes;

export type Theme = 'light' | 'dark';

/** Of two ways to look at the same pages, `npm test` takes the first and `npm run test:slow` the second: both would cost double. */
export const waysOfRun = <Way>(first: Way, second: Way): Way[] => [process.env.TEST_SLOW ? second : first];

/** It asks nobody anything by itself, and draws by itself. */
const quiet = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-domain-reliability',
  '--disable-sync',
  '--no-first-run',
  '--no-default-browser-check',
  '--no-pings',
];

/** What makes it less safe than people's own; and a graphics card in software, which costs more than all pages do. */
const unwanted = [
  /^--(single-process|no-zygote|disable-web-security|allow-running-insecure-content|disable-site-isolation)/,
  /^--(use-gl|use-angle|enable-unsafe-swiftshader|in-process-gpu|ignore-gpu-blocklist)/,
];

const axe = readFileSync(new URL(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

let started: Promise<{ browser: Browser; close(): Promise<void> }> | undefined;

async function launch() {
  const letOthersBegin = await keepOthersWaiting();
  const browser = await playwright.launch({
    executablePath: await chromiumProgram(),
    args: [...chromium.args.filter((arg) => !unwanted.some((one) => one.test(arg))), ...quiet],
    headless: true,
    timeout: 300_000,
  });
  return {
    browser,
    async close() {
      await browser.close();
      await letOthersBegin();
    },
  };
}

export function startChromium(test: TestFn) {
  test.after.always(async () => (await started)?.close());

  return {
    async visit(t: ExecutionContext, world: Pick<World, 'url'>, size: Size, colorScheme: Theme = 'light') {
      started ??= launch();
      const { browser } = await started;
      const context = await browser.newContext({
        baseURL: world.url(),
        viewport: sizes[size],
        colorScheme,
        reducedMotion: 'reduce',
        // What the machine's says may be no language tag.
        locale: 'en-GB',
        permissions: ['clipboard-read', 'clipboard-write'],
      });
      // Of its pages, and of the requests that are made beside them.
      context.setDefaultTimeout(300_000);
      t.teardown(() => context.close());
      const page = await context.newPage();
      const faults = watchFaults(page);
      const isWider = async () =>
        (await page.evaluate(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        )) !== 0;
      /** Nothing serious for people who cannot see or point; nothing said on the console; nothing wider than the screen. */
      const check = async (what: string) => {
        t.deepEqual(await violations(page), [], `${what}, ${size}`);
        t.deepEqual(faults, [], `${what}, ${size}`);
        t.false(await isWider(), `${what}, ${size}: wider than the screen`);
      };
      return { page, context, faults, check, isWider };
    },
  };
}

function watchFaults(page: Page): string[] {
  const faults: string[] = [];
  page.on('console', (message) => {
    // Chromium reports pages with a status of 400 and above, which are what was asked for.
    const isPage =
      message.text().startsWith('Failed to load resource') && message.location().url === page.url();
    if (['error', 'warning'].includes(message.type()) && !isPage)
      faults.push(`${page.url()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => faults.push(`${page.url()}: ${error.message}`));
  page.on('requestfailed', (request) => {
    if (request.failure()?.errorText !== 'net::ERR_ABORTED')
      faults.push(`${request.url()}: ${request.failure()?.errorText}`);
  });
  return faults;
}

/** By axe: its source is evaluated over the debugging protocol, which no content policy holds back. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const found: Violation[] = await page.evaluate(
    "axe.run(document, { resultTypes: ['violations'], iframes: false, preload: false }).then(({ violations }) => violations)",
  );
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`));
}

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string; failureSummary: string }[];
}
