/**
 * The reference page, generated only from the OpenAPI document: introduction, error codes, endpoints, headers. It is one
 * file with its style inside; it needs no script and no network, and can be saved.
 */
import type { Document } from '../openapi/openapi-types.ts';
import { type Endpoint, endpointSection, endpointsOf } from './endpoint-section.ts';
import { Html, html } from './html.ts';
import { type Section, sections } from './markdown.ts';
import { errorTable, headerTable } from './reference-tables.ts';

const icon =
  "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><rect width='16' height='16' rx='4' fill='%230b66c3'/><path d='M3 5h10v6H3zm0 0 5 3.5L13 5' fill='none' stroke='white'/></svg>";

export function referencePage(document: Document, style: string): string {
  const { info, components } = document;
  const [opening, ...texts] = sections(info.description);
  const endpoints = endpointsOf(document);
  const openApi = `${new URL(document.servers[0]!.url).pathname.replace(/\/$/, '')}/api/public/openapi.json`;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${info.title} API reference</title>
<link rel="icon" href="${icon}">
<style>${new Html(style)}</style>
</head>
<body>
<nav aria-label="Contents">
<p class="name">${info.title} <span>API version ${info.version}</span></p>
${contents(texts, endpoints)}<p><a href="${openApi}">OpenAPI document</a></p>
</nav>
<main>
<h1>${info.title} API reference</h1>
<p class="lead">${info.summary}</p>
${opening!.body}<pre><code>${document.servers[0]!.url}</code></pre>
${texts.map((text) => textSection(text, document))}${endpoints.map((endpoint) => endpointSection(endpoint, document))}<section id="headers">
<h2>Response headers</h2>
${headerTable(components.headers)}</section>
</main>
</body>
</html>
`.text;
}

function contents(texts: Section[], endpoints: Endpoint[]): Html {
  return html`<ul>
${texts.map(({ title }) => html`<li><a href="#${anchor(title!)}">${title}</a></li>\n`)}</ul>
<ul>
${endpoints.map(
  ({ method, operation: { operationId, summary } }) =>
    html`<li><a href="#${operationId}"><span class="method ${method.toLowerCase()}">${method}</span> ${summary}</a></li>\n`,
)}</ul>
<ul>
<li><a href="#headers">Response headers</a></li>
</ul>
`;
}

function textSection({ title, body }: Section, document: Document): Html {
  return html`<section id="${anchor(title!)}">
<h2>${title}</h2>
${body}${title === 'Errors' && errorTable(errorsOf(document))}</section>
`;
}

function anchor(title: string): string {
  return title.toLowerCase().replace(/\W+/g, '-');
}

/** Each error code once for each status, with the explanations of all operations. */
function errorsOf(document: Document) {
  const errors = new Map<string, { status: string; code: string; when: string }>();
  for (const { operation } of endpointsOf(document)) {
    for (const [status, { content }] of Object.entries(operation.responses)) {
      if (status < '400') continue;
      for (const [code, { summary }] of Object.entries(content['application/json']?.examples ?? {})) {
        const known = errors.get(`${status} ${code}`);
        const when = !known || known.when === summary ? summary : `${known.when} ${summary}`;
        errors.set(`${status} ${code}`, { status, code, when });
      }
    }
  }
  return [...errors.values()].sort((a, b) => Number(a.status) - Number(b.status));
}
