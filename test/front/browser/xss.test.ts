/**
 * Text of others, wherever a page shows it: no element and no attribute comes of it, and in a real browser no script runs,
 * nothing is said on the console, and nobody is kept out who cannot see or point.
 */
import test, { type ExecutionContext } from 'ava';
import { type DefaultTreeAdapterTypes, defaultTreeAdapter, parse } from 'parse5';
import type { Page } from '#lab/browser/browser.ts';
import { sizes, startChromium } from '#lab/browser/chromium.ts';
import { pathOf, sampledTable } from '#lab/scenes/dashboard-samples.ts';
import { markup, type Scene, startScene } from '#lab/scenes/dashboard-scene.ts';
import { table } from '#lab/table.ts';
import { until } from '#lab/until.ts';
import { listOrders } from '#mail/queue/rows/destination-rules.ts';
import { suspend } from '#mail/queue/rows/suspensions.ts';

const { visit } = startChromium(test);

const emailRoute = 'GET /dashboard/o/:org/emails/:id';

/**
 * Each page; the email's with its HTML in a frame, and with what else it shows in its place. A sign-in link is no page: it
 * would make the browser somebody else's.
 */
const pages = sampledTable
  .filter(({ method, route }) => method === 'GET' && route !== 'GET /dashboard/sign-in/:token')
  .flatMap((entry) =>
    entry.route === emailRoute
      ? [null, 'text', 'header', 'source'].map((show) => showing(entry, show))
      : showing(entry, null),
  );

function showing(entry: (typeof sampledTable)[number], show: string | null) {
  if (show === null) return { ...entry, show };
  const query = `show=${show}`;
  const sample: typeof entry.sample = async (...given) => ({ ...(await entry.sample(...given)), query });
  return { ...entry, route: `${entry.route}?${query}`, show, sample };
}

/** Where each text must be seen, so that a page that shows nothing proves nothing; it counts once the page is there. */
const shownBy: Record<string, string> = Object.fromEntries(table('browser/pages-of-samples'));

/** Beside what each scene has: what operators and other servers say of the queue and of this machine. */
async function fill(scene: Scene) {
  const { world, operator, a } = scene;
  const { db, clock } = world;
  const now = clock.now();
  await suspend(db, {
    destination: 'mx9.invalid',
    reason: markup('suspension-why'),
    createdAt: now,
    until: now + 3_600_000,
  });
  const circuit = { since: now, failures: 3, nextProbeAt: now + 60_000, reason: 'refused' };
  const state = {
    connections: 0,
    limit: 5,
    waiting: 0,
    busySince: null,
    lastReply: null,
    lastReplyAt: null,
    circuit,
  };
  await db('destinations').insert({
    name: 'mx1.invalid',
    node: 'other',
    state: JSON.stringify(state),
    at: now,
  });
  const browser = await scene.browserOf(operator);
  const action = { action: 'hold', domain: 'nowhere.invalid', reason: markup('order-reason') };
  await browser.post('/dashboard/queue/actions', { _csrf: browser._csrf, ...action });
  await browser.post('/dashboard/doctor', { _csrf: browser._csrf, domain: a.domain });
  await until(async () =>
    /checked for .* (ago|just now)/.test((await browser.get('/dashboard/doctor')).text),
  );
  return browser;
}

type Element = DefaultTreeAdapterTypes.Element;

function* elementsOf(
  node: DefaultTreeAdapterTypes.ChildNode | DefaultTreeAdapterTypes.Document,
): Generator<Element> {
  if (defaultTreeAdapter.isElementNode(node)) yield node;
  if ('childNodes' in node) for (const child of node.childNodes) yield* elementsOf(child);
}

/** What must not be in a page, whoever wrote what it shows. */
function faultsOf(html: string): string[] {
  return [...elementsOf(parse(html))].flatMap(({ tagName, attrs, childNodes }) => {
    const name = `<${tagName}>`;
    const isInline = tagName === 'style' || (tagName === 'script' && childNodes.length > 0);
    return [
      ...(tagName === 'pwned-x' || isInline || tagName === 'base' ? [name] : []),
      ...attrs
        .filter((one) => /^(pwned|on|style$|srcdoc$|hx-on)/.test(one.name))
        .map((one) => `${name} has ${one.name}`),
      ...attrs
        .filter(
          (one) =>
            /^(src|href|action|formaction|hx-(get|post)|data)$/.test(one.name) &&
            !/^(\/|\?|#|data:image\/|mailto:|https?:)/.test(one.value),
        )
        .map((one) => `${name} leads to ${one.value}`),
    ];
  });
}

const isHtml = ({ headers }: Page) => /html/.test(headers.get('content-type') ?? '');

const policyOf = ({ headers }: Page) => headers.get('content-security-policy') ?? '';

const isSandboxed = (policy: string) => /(^|; )sandbox(;|$)/.test(policy);

/** A mail as it was written is its writer's; it is shown where no script runs and nothing is loaded. */
function checkPolicy(t: ExecutionContext, policy: string, route: string): void {
  t.regex(policy, /^default-src 'none'/, route);
  if (isSandboxed(policy)) t.notRegex(policy, /script-src|connect-src|frame-src|allow-|https?:|\*/, route);
  else t.notRegex(policy, /unsafe-|\*/, route);
}

test('texts of others make no element and no attribute of a page', async (t) => {
  const scene = await startScene(t);
  const browser = await fill(scene);
  const seen = new Map<string, string>();
  for (const entry of pages) {
    const given = await entry.sample(scene, scene.a, browser);
    const answer = await browser.get(pathOf(entry, scene.a.id, given));
    const policy = policyOf(answer);
    t.is(answer.headers.get('x-content-type-options'), 'nosniff', entry.route);
    seen.set(entry.route, answer.html);
    checkPolicy(t, policy, entry.route);
    if (entry.show)
      t.true(answer.html.includes(`show=${entry.show}#content" aria-current="true"`), entry.route);
    if (isHtml(answer) && !isSandboxed(policy)) t.deepEqual(faultsOf(answer.html), [], entry.route);
  }
  for (const [text, route] of Object.entries(shownBy)) {
    const page = seen.get(route);
    if (page !== undefined)
      t.regex(
        page,
        new RegExp(`pwned=1[^<>]*${text}`),
        `${route} shows no ${text}, so nothing is proved of it`,
      );
  }
  t.true((await listOrders(scene.world.db, scene.world.clock.now())).length > 0);
});

/** What a mail's own HTML tries in its frame does not come about, and Chromium says so. */
const isKeptOut = (fault: string) =>
  /Blocked script execution in '[^']*\/preview' because the document's frame is sandboxed/.test(fault) ||
  /\/x' violates the following Content Security Policy directive: "img-src data:"/.test(fault) ||
  /\/(?:emails|received)\/[^ ]*\/x: csp$/.test(fault);

test('in a browser no text of others runs, and in the slow run every page passes the checks of accessibility', async (t) => {
  const scene = await startScene(t);
  const filled = await fill(scene);
  const { page, context, faults, check, isWider } = await visit(t, scene.world, 'desktop');
  await context.addCookies([
    { name: 'postern-session', value: filled.jar.get('postern-session')!, url: scene.world.url() },
  ]);
  page.on('dialog', (dialog) => {
    t.fail(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  const forgetKeptOut = () => {
    const kept = faults.filter((fault) => !isKeptOut(fault));
    const wereSome = kept.length < faults.length;
    faults.splice(0, faults.length, ...kept);
    return wereSome;
  };
  for (const entry of pages) {
    const given = await entry.sample(scene, scene.a, filled);
    const path = pathOf(entry, scene.a.id, given);
    const answer = await filled.ask('GET', path);
    if (!isHtml(answer)) continue;
    await page.goto(path);
    // What is a part of a page, and a mail as its writer made it, need not be fit for anybody.
    if (/^<!doctype/i.test(answer.html) && !isSandboxed(policyOf(answer))) {
      if (entry.route === emailRoute) {
        await until(forgetKeptOut, { what: () => 'Chromium to block what the mail in the frame tries' });
        await page.waitForLoadState('networkidle');
      }
      forgetKeptOut();
      if (process.env.TEST_SLOW) {
        await check(entry.route);
        await page.setViewportSize(sizes.phone);
        // The charts follow the new width a moment later.
        await until(async () => !(await isWider()), { what: `${entry.route} to fit a phone` });
        await page.setViewportSize(sizes.desktop);
      }
    }
    t.is(await page.evaluate('window.pwned'), undefined, entry.route);
    forgetKeptOut();
  }
  await page.waitForLoadState('networkidle');
  forgetKeptOut();
  t.deepEqual(faults, [], 'what came late');
});
