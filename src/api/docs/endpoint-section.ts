/** The section of one endpoint: description, request, curl examples and every response. */
import type { Document, DocumentedResponse, Operation } from '../openapi/openapi-types.ts';
import { type Call, curl } from './curl.ts';
import { type Html, html } from './html.ts';
import { blocks, inline } from './markdown.ts';
import { fieldTable, parameterTable } from './reference-tables.ts';

export interface Endpoint {
  path: string;
  method: string;
  operation: Operation;
}

export function endpointsOf(document: Document): Endpoint[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
}

export function endpointSection(endpoint: Endpoint, document: Document): Html {
  const { path, method, operation } = endpoint;
  return html`<section id="${operation.operationId}">
<h2>${operation.summary}</h2>
<p class="address"><span class="method ${method.toLowerCase()}">${method}</span> <code>${path}</code></p>
${blocks(operation.description)}<p>${scopes(operation)}</p>
${requests(endpoint, document)}
<h3>Parameters</h3>
${parameterTable(operation.parameters)}${requestBody(operation, document)}
<h3>Answers</h3>
${Object.entries(operation.responses).map(([status, answer]) => answerOf(status, answer, document))}</section>
`;
}

function scopes({ security }: Operation): Html {
  const names = security.flatMap((one) => Object.values(one).flat());
  if (names.length === 0) return html`No key is needed.`;
  const codes = names.map((name, index) => html`${index > 0 && ' or '}<code>${name}</code>`);
  return html`The key needs the scope ${codes}.`;
}

function requests({ path, method, operation }: Endpoint, document: Document): Html {
  const call: Call = { baseUrl: document.servers[0]!.url, path, method, operation };
  const { 'application/json': json, 'text/csv': csv } = operation.requestBody?.content ?? {};
  const examples = json?.examples ?? csv?.examples;
  if (!examples) return html`<pre tabindex="0"><code>${curl(call)}</code></pre>`;
  const type = json ? 'application/json' : 'text/csv';
  return html`${Object.values(examples).map(({ summary, value }, index) =>
    folded(html`${summary}`, curl({ ...call, body: { type, value } }), index === 0),
  )}`;
}

function requestBody({ requestBody: body }: Operation, { components }: Document): Html | false {
  if (!body) return false;
  const json = body.content['application/json'];
  return html`<h3>Body</h3>
<p>${inline(body.description)}</p>
${json && fieldTable(named(json.schema.$ref!, components.schemas), components.schemas, 'request')}`;
}

function answerOf(
  status: string,
  { description, content }: DocumentedResponse,
  { components }: Document,
): Html {
  const { schema = {}, examples = {} } = content['application/json'] ?? {};
  const texts = { ...content['text/csv']?.examples, ...content['text/event-stream']?.examples };
  const isGood = status.startsWith('2');
  const members =
    isGood && schema.$ref && fieldTable(named(schema.$ref, components.schemas), components.schemas, 'answer');
  const folds = Object.entries(examples).map(([name, { summary, value }], index) =>
    folded(
      isGood ? inline(summary) : html`<code>${name}</code> ${inline(summary)}`,
      JSON.stringify(value, null, 2),
      isGood && index === 0,
    ),
  );
  const plain = Object.values(texts).map(({ summary, value }) => folded(inline(summary), String(value)));
  return html`<div class="answer"><span class="status ${isGood ? 'good' : 'bad'}">${status}</span>
<div>${isGood && blocks(description)}${folds}${plain}${members}</div></div>
`;
}

function named(ref: string, schemas: Document['components']['schemas']) {
  return schemas[ref.split('/').at(-1)!]!;
}

function folded(summary: Html, text: string, isOpen = false): Html {
  return html`<details${isOpen && ' open'}><summary>${summary}</summary><pre tabindex="0"><code>${text}</code></pre></details>
`;
}
