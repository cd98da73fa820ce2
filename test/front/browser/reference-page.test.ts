/** The reference page at /docs shows the OpenAPI document and loads nothing from other hosts. */
import test from 'ava';
import { type Size, startChromium, type Theme } from '#lab/browser/chromium.ts';
import { startWorld } from '#lab/scenes/world.ts';

const { visit } = startChromium(test);

test('the page shows every endpoint and loads nothing from other hosts', async (t) => {
  const world = await startWorld(t);
  const { page, faults } = await visit(t, world, 'desktop');
  const hosts = new Set<string>();
  page.on('request', (request) => hosts.add(new URL(request.url()).origin));
  await page.goto('/docs');
  await page.getByRole('heading', { name: 'Authentication' }).first().waitFor();
  for (const tag of ['Email', 'Events', 'Domains', 'Keys', 'Suppressions', 'Webhooks', 'Credits'])
    t.true((await page.getByText(tag, { exact: true }).count()) > 0, tag);
  await page.getByText('Send an email').first().click();
  await page.getByText('Test Request').first().waitFor();
  for (const language of ['Ruby', 'Node.js', 'PHP', 'Python'])
    t.true((await page.getByText(language).count()) > 0, language);
  t.notRegex(
    await page.locator('body').innerText(),
    /send\?dryRun|--header 'X-Request-Id/,
    'the samples send',
  );
  t.deepEqual(faults, [], 'nothing is blocked or reported on the console');
  t.deepEqual(
    [...hosts].filter((origin) => origin !== world.url()),
    [],
  );
});

const ways: [Size, Theme][] = [
  ['desktop', 'light'],
  ['phone', 'dark'],
];

// It is dear, and changes with its package only.
for (const [size, theme] of process.env.TEST_SLOW ? ways : []) {
  test(`everybody can read it: ${size}, ${theme}`, async (t) => {
    const world = await startWorld(t);
    const { page, check } = await visit(t, world, size, theme);
    for (const [part, last] of [
      ['description/quick-start', 'code.hljs'],
      ['tag/email/POST/api/public/email/send', '.scalar-code-copy'],
      ['tag/events', '.show-more'],
    ] as const) {
      await page.goto('about:blank');
      await page.goto(`/docs#${part}`);
      await page.locator(last).first().waitFor({ state: 'attached' });
      await check(part);
    }
  });
}

test('the policy of the page allows no other host', async (t) => {
  const world = await startWorld(t);
  const response = await fetch(`${world.url()}/docs`);
  t.is(response.headers.get('content-type'), 'text/html; charset=utf-8');
  const policy = response.headers.get('content-security-policy')!;
  t.true(policy.startsWith("default-src 'none'; script-src 'self';"));
  t.notRegex(policy, /https?:|\*/);
  const page = await response.text();
  const references = [...page.matchAll(/\s(?:href|src|data-url)="([^"]*)"/g)].map(([, url]) => url!);
  t.is(references.length, 4);
  for (const url of references.filter((one) => one !== 'data:,'))
    t.is((await fetch(new URL(url, world.url()))).status, 200, url);
});

test('the page answers GET and HEAD only', async (t) => {
  const world = await startWorld(t);
  t.is((await fetch(`${world.url()}/docs`, { method: 'HEAD' })).status, 200);
  const other = await fetch(`${world.url()}/docs`, { method: 'POST' });
  t.is(other.status, 405);
  t.is(other.headers.get('allow'), 'HEAD, GET');
});
