/** Item 7: where a browser goes after signing in. Never to another site, whatever the link said. */
import { createBrowser, password } from '#lab/browser/browser.ts';
import { type Attack, type Verdict, verdict } from './attack.ts';
import type { Scene } from './scene.ts';

const targets = [
  '/dashboard/..//evil.example/x',
  '/dashboard/../\\evil.example/x',
  '/dashboard/.././/evil.example',
  '/dashboard/x/../..//evil.example',
  '/dashboard/%2e%2e//evil.example/x',
  '/dashboard/%2E.//evil.example/x',
  '/dashboard/.%2e/%2fevil.example',
  '/dashboard/../..//evil.example',
  '/dashboard/..\t//evil.example',
  '/dashboard/..\r\n//evil.example',
  '/dashboard/..\\\\evil.example',
  '/dashboard\\..\\\\evil.example',
  '/dashboard/..///evil.example',
  '/dashboard/../http://evil.example',
  '/dashboard@evil.example',
  '/dashboard.evil.example/',
  '//evil.example/dashboard',
  '\\\\evil.example/dashboard',
  '/\\evil.example/dashboard',
  '///evil.example/dashboard',
  'https://evil.example/dashboard',
  'https:evil.example/dashboard',
  'javascript:alert(1)//dashboard',
  ' //evil.example/dashboard',
  '/\t/evil.example/dashboard',
];

/** Where a browser goes that was at `from`. */
const landing = (location: string, from: string) => URL.parse(location, from)?.href ?? location;

const isOurs = (href: string, url: string) => new URL(href).origin === url;

async function redirect(scene: Scene): Promise<Verdict> {
  const { url } = scene;
  const signedIn = await scene.operator();
  const email = 'olga@postern.invalid';
  const astray: string[] = [];
  const note = (way: string, to: string, location: string | null) => {
    if (location === null) return astray.push(`${way} ${JSON.stringify(to)} was not answered by a redirect`);
    const href = landing(location, `${url}/dashboard/sign-in`);
    return isOurs(href, url) ? 0 : astray.push(`${way} ${JSON.stringify(to)} leads to ${href}`);
  };
  for (const to of targets) {
    const path = `/dashboard/sign-in?${new URLSearchParams({ to })}`;
    note('GET', to, (await signedIn.ask('GET', path)).headers.get('location'));
    const browser = createBrowser({ url: () => url });
    await browser.get(path);
    const body = new URLSearchParams({ _csrf: browser.csrf(), email, password, to }).toString();
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const answer = await browser.ask('POST', '/dashboard/sign-in', { body, headers });
    note('POST', to, answer.headers.get('location'));
  }
  return verdict(`${astray.length} of ${2 * targets.length} lead away; the first: ${astray[0] ?? 'none'}`, [
    astray.length === 0,
    `${astray.length} lead away; ${astray.slice(0, 3).join('; ')}`,
  ]);
}

export const redirects: Attack[] = [
  { item: 7, name: `${targets.length} targets after signing in, by GET and by POST`, run: redirect },
];
