/**
 * `node scripts/screenshots.ts`: takes the eight pictures of the dashboard that README.md and docs/dashboard.md show.
 * It first sends the mail that they show through a real server on loopback (test/lab/scenes/acme.ts), which takes a minute or two.
 *
 *   --out DIRECTORY      write the pictures there instead of to docs/screenshots/
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium as playwright } from 'playwright-core';
import { password } from '#lab/browser/browser.ts';
import { chromiumProgram } from '#lab/browser/chromium-program.ts';
import { progress } from '#lab/load/figures.ts';
import { readOptions, runScript, type Stage } from '#lab/load/stage.ts';
import { type Acme, startAcme } from '#lab/scenes/acme.ts';
import { createHistory, type ShownIds } from '#lab/scenes/acme-history.ts';

const args = readOptions('node scripts/screenshots.ts [--out DIRECTORY]', {
  out: { type: 'string', default: join(import.meta.dirname, '../docs/screenshots') },
});

const widths = { desktop: 1280, phone: 390 };
const heights = { min: 600, max: 900 };
const quality = 60;

interface Picture {
  name: string;
  path: string;
  theme: 'light' | 'dark';
  width: number;
}

function picturesOf({ orgId }: Acme, { emailId, webhookId }: ShownIds): Picture[] {
  const base = `/dashboard/o/${orgId}`;
  const light = { theme: 'light', width: widths.desktop } as const;
  return [
    { ...light, name: 'overview-light', path: `${base}?window=7d` },
    { ...light, name: 'overview-dark', path: `${base}?window=7d`, theme: 'dark' },
    { ...light, name: 'emails-light', path: `${base}/emails` },
    { ...light, name: 'email-light', path: `${base}/emails/${emailId}` },
    { ...light, name: 'phone-email-light', path: `${base}/emails/${emailId}`, width: widths.phone },
    { ...light, name: 'domain-light', path: `${base}/domains/example.com` },
    { ...light, name: 'webhook-light', path: `${base}/webhooks/${webhookId}` },
    { ...light, name: 'queue-light', path: '/dashboard/queue' },
  ];
}

async function takeAll(stage: Stage): Promise<string[]> {
  const acme = await startAcme(stage);
  const ended = await createHistory(stage, acme);
  progress('the mail is sent');
  const browser = await stage.start(launch(), (it) => it.close());
  await mkdir(args.out, { recursive: true });
  const storageState = await signIn(browser, acme);
  const faults: string[] = [];
  for (const picture of picturesOf(acme, ended)) {
    const context = await browser.newContext({
      baseURL: acme.url,
      colorScheme: picture.theme,
      reducedMotion: 'reduce',
      locale: 'en-GB',
      timezoneId: 'UTC',
      storageState,
      viewport: { width: picture.width, height: heights.min },
    });
    faults.push(...(await take(context, picture)));
    await context.close();
  }
  return faults;
}

async function launch(): Promise<Browser> {
  return playwright.launch({
    executablePath: await chromiumProgram(),
    args: ['--no-sandbox', '--disable-background-networking'],
    headless: true,
  });
}

async function signIn(browser: Browser, { url, email }: Acme) {
  const context = await browser.newContext({ baseURL: url });
  const page = await context.newPage();
  await page.goto('/dashboard/sign-in');
  await page.getByLabel('Email address').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/dashboard\/(o|organizations)/);
  const state = await context.storageState();
  await context.close();
  return state;
}

async function take(context: BrowserContext, { name, path, width }: Picture): Promise<string[]> {
  const page = await context.newPage();
  const response = await page.goto(path);
  await page.locator('.htmx-request').waitFor({ state: 'detached' });
  await page.evaluate('document.fonts.ready');
  const [high, wide] = await page.evaluate<number[]>(
    '[document.documentElement.scrollHeight, document.documentElement.scrollWidth]',
  );
  await page.setViewportSize({ width, height: Math.min(Math.max(high!, heights.min), heights.max) });
  await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn, 150)))');
  // Playwright itself does not write WebP.
  const session = await context.newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality });
  const picture = Buffer.from(data, 'base64');
  await writeFile(join(args.out, `${name}.webp`), picture);
  progress(`${name}: ${Math.ceil(picture.length / 1024)} KiB`);
  await page.close();
  return [
    ...(response?.ok() ? [] : [`${name}: ${path} answered ${response?.status()}`]),
    ...(wide! > width ? [`${name}: the page is ${wide} px wide, more than the screen`] : []),
  ];
}

const faults = await runScript('screenshots', takeAll);
for (const fault of faults) console.error(fault);
process.exit(faults.length === 0 ? 0 : 1);
