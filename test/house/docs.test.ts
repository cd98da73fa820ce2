/** The reference page at /docs is complete, is generated from the OpenAPI document, and loads nothing from other hosts. */
import { createHash } from 'node:crypto';
import test from 'ava';
import { curl } from '../../src/api/docs/curl.ts';
import { Html, html } from '../../src/api/docs/html.ts';
import { blocks } from '../../src/api/docs/markdown.ts';
import type { ComponentSchema } from '../../src/api/openapi/openapi-types.ts';
import { operationsOf, readContract } from '../lab/openapi.ts';
import { startWorld } from '../lab/scenes/world.ts';

/** The names of all members of a schema, in all depths. */
function membersOf(node: unknown): string[] {
  if (typeof node !== 'object' || node === null) return [];
  const { properties = {} } = node as ComponentSchema;
  return [...Object.keys(properties), ...Object.values(node).flatMap(membersOf)];
}

const unescaped = (text: string) =>
  text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');

test('the page has every field, code, header and example of the document', async (t) => {
  const world = await startWorld(t);
  const response = await fetch(`${world.url()}/docs`);
  t.is(response.status, 200);
  t.is(response.headers.get('content-type'), 'text/html; charset=utf-8');
  const page = unescaped(await response.text());
  const { document } = await readContract(world);
  const { schemas, headers } = document.components;
  for (const name of [
    'SendRequest',
    'SendAnswer',
    'Email',
    'Recipient',
    'Reply',
    'DeferredEvent',
    'ClickedEvent',
  ])
    for (const member of membersOf(schemas[name])) t.regex(page, new RegExp(`[>.\\]]${member}<`), member);
  for (const name of Object.keys(headers)) t.true(page.includes(`<code>${name}</code>`), name);
  for (const { path, operation } of operationsOf(document)) {
    t.true(page.includes(`<code>${path}</code>`), path);
    const bodies = [operation.requestBody, ...Object.values(operation.responses)];
    for (const body of bodies) {
      for (const { value } of Object.values(body?.content['application/json']?.examples ?? {}))
        t.true(page.includes(JSON.stringify(value, null, 2)));
    }
  }
});

test('the page loads nothing from other hosts, runs no script, and its policy allows only its own style', async (t) => {
  const world = await startWorld(t);
  const response = await fetch(`${world.url()}/docs`);
  const page = await response.text();
  const references = [...page.matchAll(/\s(?:href|src|action|srcset)="([^"]*)"/g)].map(([, url]) => url!);
  t.true(references.length > 5);
  for (const url of references) t.regex(url, /^(#|\/(?!\/)|data:image\/svg)/);
  t.notRegex(page, /<script|\son\w+=|@import|url\(|style="/);
  const style = /<style>(.*?)<\/style>/s.exec(page)![1]!;
  const hash = createHash('sha256').update(style).digest('base64');
  const policy = response.headers.get('content-security-policy')!;
  t.true(policy.includes(`style-src 'sha256-${hash}'`));
  t.true(policy.startsWith("default-src 'none';"));
  for (const url of references.filter((one) => one.startsWith('/')))
    t.is((await fetch(world.url() + url)).status, 200, url);
  for (const anchor of references.filter((one) => one.startsWith('#')))
    t.true(page.includes(`id="${anchor.slice(1)}"`), anchor);
});

test('the page answers GET and HEAD only', async (t) => {
  const world = await startWorld(t);
  t.is((await fetch(`${world.url()}/docs`, { method: 'HEAD' })).status, 200);
  const other = await fetch(`${world.url()}/docs`, { method: 'POST' });
  t.is(other.status, 405);
  t.is(other.headers.get('allow'), 'HEAD, GET');
});

test('values in a template are escaped, except Html objects', (t) => {
  const evil = '<img src=x onerror="a(\'&\')">';
  const escaped = '&lt;img src=x onerror=&quot;a(&#39;&amp;&#39;)&quot;&gt;';
  t.is(html`<p title="${evil}">${evil}</p>`.text, `<p title="${escaped}">${escaped}</p>`);
  t.is(html`${[html`<b>1</b>`, new Html('<i>'), 2, null, undefined, false]}`.text, '<b>1</b><i>2');
  t.is(blocks('`<b>` and <i>').text.trim(), '<p><code>&lt;b&gt;</code> and &lt;i&gt;</p>');
});

test('the curl sample quotes any body', (t) => {
  const operation = { parameters: [], security: [] } as never;
  const body = { type: 'application/json', value: { text: "it's" } } as const;
  const command = curl({ baseUrl: 'https://a.invalid', path: '/b', method: 'POST', operation, body });
  t.true(command.endsWith(`-d '{\n  "text": "it'\\''s"\n}'`));
});
