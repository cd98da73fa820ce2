/**
 * A browser as plain as can be: fetch, a jar of cookies, redirects followed by GET, and forms filled in as people do, by
 * what the page says, its hidden fields included. No scripts run.
 *
 *   const browser = createBrowser(world);
 *   await setUp(browser, world);
 *   const page = await browser.get('/dashboard');
 *   await browser.submit('/keys', { label: 'app', scopes: ['email:send'] });
 */
import type { ExecutionContext } from 'ava';
import { type DefaultTreeAdapterTypes, defaultTreeAdapter, parse } from 'parse5';
import type { World } from '../scenes/world.ts';

type Element = DefaultTreeAdapterTypes.Element;
type Node = DefaultTreeAdapterTypes.ChildNode | DefaultTreeAdapterTypes.Document;

export interface Page {
  status: number;
  /** Path and search, after redirects. */
  path: string;
  headers: Headers;
  html: string;
  /** What is read, without the tags, blanks folded. */
  text: string;
  /** Each form that is posted: where it goes, and the fields that it has by itself. */
  forms: { action: string; fields: URLSearchParams }[];
}

type Fields = Record<string, string | string[]>;

export type Browser = ReturnType<typeof createBrowser>;

export const password = 'correct horse battery';

const maxRedirects = 5;

export function createBrowser(world: Pick<World, 'url'>, headers: Record<string, string> = {}) {
  const jar = new Map<string, string>();
  let page: Page | undefined;

  async function ask(method: string, path: string, init: RequestInit = {}): Promise<Page> {
    const response = await fetch(new URL(path, world.url()), {
      method,
      redirect: 'manual',
      ...init,
      headers: { cookie: cookies(), ...headers, ...init.headers },
    });
    for (const line of response.headers.getSetCookie()) keep(line);
    const html = await response.text();
    // A view prints `undefined` for a member that does not exist: no type checker sees that.
    if (/\b(undefined|NaN)\b/.test(html) && response.headers.get('content-type')?.startsWith('text/html'))
      throw new Error(`${method} ${path} shows ${/.{0,80}\b(undefined|NaN)\b/.exec(html)![0]}`);
    page = pageOf(response, path, html);
    return page;
  }

  async function follow(first: Page): Promise<Page> {
    let at = first;
    for (let hops = 0; at.status === 303 || at.status === 302; hops++) {
      if (hops === maxRedirects) throw new Error(`too many redirects, last to ${at.path}`);
      at = await ask('GET', at.headers.get('location')!);
    }
    return at;
  }

  function keep(line: string): void {
    const [pair = '', ...attributes] = line.split('; ');
    const [name, value] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)];
    if (attributes.includes(`expires=${new Date(0).toUTCString()}`)) jar.delete(name);
    else jar.set(name, value);
  }

  const cookies = () => [...jar].map(([name, value]) => `${name}=${value}`).join('; ');

  const browser = {
    jar,
    page: () => page!,
    /** One answer, redirects as they are. */
    ask,
    get: async (path: string) => follow(await ask('GET', path)),
    /** What no page offered. */
    post: async (path: string, fields: Fields, more: Record<string, string> = {}) =>
      follow(
        await ask('POST', path, {
          body: filledIn(new URLSearchParams(), fields).toString(),
          headers: { 'content-type': 'application/x-www-form-urlencoded', ...more },
        }),
      ),
    /** The form of the page at hand whose action ends so; '': the one that goes to the page itself. */
    async submit(action: string, fields: Fields = {}): Promise<Page> {
      const form = page!.forms.find((one) =>
        action === '' ? one.action === page!.path : one.action.endsWith(action),
      );
      if (!form)
        throw new Error(
          `${page!.path} has no form for ${action}, but ${page!.forms.map((one) => one.action)}`,
        );
      return browser.post(form.action, Object.fromEntries(entries(filledIn(form.fields, fields))));
    },
    /** A token of this browser's own, off the page at hand. */
    csrf: () => /<meta name="csrf" content="([^"]+)"/.exec(page!.html)![1]!,
  };
  return browser;
}

/** Through the link that the first start printed; leaves the browser signed in as the operator. */
export async function setUp(
  browser: Browser,
  world: Pick<World, 'setUpUrl'>,
  fields: Fields = {},
): Promise<Page> {
  await browser.get(new URL(world.setUpUrl()!).pathname);
  const operator = { name: 'Olga Operator', email: 'olga@postern.invalid', password };
  return browser.submit('', { ...operator, ...fields });
}

export async function signIn(browser: Browser, email: string, secret = password): Promise<Page> {
  await browser.get('/dashboard/sign-in');
  return browser.submit('/sign-in', { email, password: secret });
}

/** What every page must say of itself. */
export function checkHeaders(t: ExecutionContext, { headers, path }: Page): void {
  const policy = headers.get('content-security-policy') ?? '';
  t.regex(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; /, path);
  t.notRegex(policy, /unsafe|\*/, path);
  t.is(headers.get('x-content-type-options'), 'nosniff', path);
  t.is(headers.get('cache-control'), 'no-store', path);
  t.is(headers.get('referrer-policy'), 'same-origin', path);
}

function filledIn(fields: URLSearchParams, given: Fields): URLSearchParams {
  const filled = new URLSearchParams(fields);
  for (const [name, value] of Object.entries(given)) {
    filled.delete(name);
    for (const one of [value].flat()) filled.append(name, one);
  }
  return filled;
}

function entries(fields: URLSearchParams): [string, string[]][] {
  return [...new Set(fields.keys())].map((name) => [name, fields.getAll(name)]);
}

/** Most tests ask for little of it: it is parsed when they do. */
function pageOf({ status, headers }: Response, path: string, html: string): Page {
  let parsed: DefaultTreeAdapterTypes.Document | undefined;
  const document = () => {
    parsed ??= parse(html);
    return parsed;
  };
  return {
    status,
    headers,
    path,
    html,
    get forms() {
      return [...walk(document())]
        .filter((element) => element.tagName === 'form' && attribute(element, 'method') === 'post')
        .map((form) => ({ action: attribute(form, 'action') ?? path, fields: fieldsOf(form) }));
    },
    get text() {
      return textOf(document()).replace(/\s+/g, ' ').trim();
    },
  };
}

function* walk(node: Node): Generator<Element> {
  if (defaultTreeAdapter.isElementNode(node)) yield node;
  if ('childNodes' in node) for (const child of node.childNodes) yield* walk(child);
}

function fieldsOf(form: Element): URLSearchParams {
  const fields = new URLSearchParams();
  for (const element of walk(form)) {
    const name = attribute(element, 'name');
    const type = attribute(element, 'type');
    const isChoice = type === 'checkbox' || type === 'radio';
    if (name === null || !['input', 'textarea'].includes(element.tagName)) continue;
    if (isChoice && attribute(element, 'checked') === null) continue;
    fields.append(name, attribute(element, 'value') ?? textOf(element));
  }
  return fields;
}

function attribute(element: Element, name: string): string | null {
  return element.attrs.find((one) => one.name === name)?.value ?? null;
}

function textOf(node: Node): string {
  if (defaultTreeAdapter.isTextNode(node)) return node.value;
  if (defaultTreeAdapter.isElementNode(node) && ['script', 'style'].includes(node.tagName)) return '';
  return 'childNodes' in node ? node.childNodes.map(textOf).join(' ') : '';
}
