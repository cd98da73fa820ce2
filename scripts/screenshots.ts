/**
 * `node scripts/screenshots.ts`: takes the pictures of the dashboard that README.md shows, into scripts/screenshots/: every
 * page in both themes as on a desk, the most used ones as on a phone. What they show is made first (peers/acme.ts), with the
 * real service on loopback, which takes a minute or two.
 *
 *   --out DIRECTORY      elsewhere
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import chromium from '@sparticuz/chromium';
import { type Browser, type BrowserContext, type Page, chromium as playwright } from 'playwright-core';
import { password } from '../test/helpers/browser.ts';
import { type Acme, startAcme } from './peers/acme.ts';
import { type Ended, tellStory } from './peers/acme-story.ts';
import { progress } from './peers/figures.ts';
import { perform, readOptions, type Stage } from './peers/stage.ts';

const given = readOptions('node scripts/screenshots.ts [--out DIRECTORY]', {
  out: { type: 'string', default: join(import.meta.dirname, 'screenshots') },
});

const themes = ['light', 'dark'] as const;
const widths = { desk: 1280, phone: 390 };
const heights = { min: 600, max: 900 };
const quality = 60;

interface Picture {
  name: string;
  path: string;
  onPhone?: true;
  /** What is done on the page before. */
  prepare?(page: Page): Promise<unknown>;
}

function picturesOf({ orgId }: Acme, { emailId, webhookId }: Ended): Picture[] {
  const base = `/dashboard/o/${orgId}`;
  return [
    { name: 'overview', path: `${base}?window=7d`, onPhone: true },
    { name: 'emails', path: `${base}/emails`, onPhone: true },
    { name: 'email', path: `${base}/emails/${emailId}`, onPhone: true },
    { name: 'send-test', path: `${base}/send-test` },
    { name: 'domains', path: `${base}/domains` },
    { name: 'domain', path: `${base}/domains/example.com` },
    { name: 'keys', path: `${base}/keys` },
    { name: 'suppressions', path: `${base}/suppressions` },
    { name: 'webhooks', path: `${base}/webhooks` },
    { name: 'webhook', path: `${base}/webhooks/${webhookId}` },
    { name: 'credits', path: `${base}/credits` },
    { name: 'limits', path: `${base}/limits` },
    { name: 'team', path: `${base}/team` },
    { name: 'account', path: '/dashboard/account' },
    { name: 'queue', path: '/dashboard/queue' },
    { name: 'destination', path: '/dashboard/queue/to/old-host.example' },
    { name: 'doctor', path: '/dashboard/doctor', prepare: runDoctor },
  ];
}

async function takeAll(stage: Stage): Promise<string[]> {
  const acme = await startAcme(stage);
  const ended = await tellStory(stage, acme);
  progress('the mail is sent');
  const browser = await stage.start(launch(), (it) => it.close());
  await mkdir(given.out, { recursive: true });
  const storageState = await signIn(browser, acme);
  const faults: string[] = [];
  for (const theme of themes) {
    const visit = (width: number) =>
      browser.newContext({
        ...{ baseURL: acme.url, colorScheme: theme, reducedMotion: 'reduce', locale: 'en-GB', storageState },
        ...{ viewport: { width, height: heights.min }, timezoneId: 'UTC' },
      });
    const desk = await visit(widths.desk);
    const phone = await visit(widths.phone);
    for (const picture of picturesOf(acme, ended)) {
      faults.push(...(await take(desk, picture, theme)));
      if (picture.onPhone)
        faults.push(...(await take(phone, { ...picture, name: `phone-${picture.name}` }, theme)));
    }
    await desk.close();
    await phone.close();
  }
  return faults;
}

function launch(): Promise<Browser> {
  return chromium.executablePath().then((executablePath) =>
    playwright.launch({
      executablePath,
      args: ['--no-sandbox', '--disable-background-networking'],
      headless: true,
    }),
  );
}

/** Takes the pictures of the door on the way in. */
async function signIn(browser: Browser, { url, email }: Acme) {
  const open = (colorScheme: (typeof themes)[number]) =>
    browser.newContext({
      baseURL: url,
      colorScheme,
      viewport: { width: widths.desk, height: heights.min },
    });
  for (const theme of themes) {
    const context = await open(theme);
    await take(context, { name: 'sign-in', path: '/dashboard/sign-in' }, theme);
    await context.close();
  }
  const context = await open('light');
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

async function take(
  context: BrowserContext,
  { name, path, prepare }: Picture,
  theme: string,
): Promise<string[]> {
  const page = await context.newPage();
  const answer = await page.goto(path);
  await prepare?.(page);
  await page.locator('.htmx-request').waitFor({ state: 'detached' });
  await page.getByText('Looking…').first().waitFor({ state: 'hidden' });
  await page.evaluate('document.fonts.ready');
  const { width } = page.viewportSize()!;
  const [high, wide] = await page.evaluate<number[]>(
    '[document.documentElement.scrollHeight, document.documentElement.scrollWidth]',
  );
  await page.setViewportSize({ width, height: Math.min(Math.max(high!, heights.min), heights.max) });
  await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn, 150)))');
  // Playwright's own screenshots are no WebP.
  const session = await context.newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality });
  const picture = Buffer.from(data, 'base64');
  await writeFile(join(given.out, `${name}-${theme}.webp`), picture);
  progress(`${name}, ${theme}: ${Math.ceil(picture.length / 1024)} KiB`);
  await page.close();
  return [
    ...(answer?.ok() ? [] : [`${name}: ${path} answers ${answer?.status()}`]),
    ...(wide! > width ? [`${name}, ${theme}: ${wide} px wide, more than the screen`] : []),
  ];
}

async function runDoctor(page: Page): Promise<void> {
  if (await page.getByRole('button', { name: 'Look again' }).isVisible()) return;
  await page.getByRole('button', { name: 'Look' }).click();
  await page
    .getByText(/\d+ (OK|ok)/)
    .first()
    .waitFor({ timeout: 40_000 });
}

const faults = await perform('screenshots', takeAll);
for (const fault of faults) console.error(fault);
process.exit(faults.length === 0 ? 0 : 1);
