/** The tables of the page: members of a schema, parameters, headers and error codes. */

import type { ComponentSchema, Header, Parameter } from '../openapi/openapi-types.ts';
import { type Row, rowsOf, type Schemas } from './field-rows.ts';
import { type Html, html } from './html.ts';
import { inline } from './markdown.ts';

/** Marks required members in a request, and members that can be absent in a response. */
export function fieldTable(schema: ComponentSchema, schemas: Schemas, of: 'request' | 'answer'): Html {
  return table(
    ['field', 'type', 'description'],
    rowsOf(schema, schemas).map((row) => fieldRow(row, of)),
  );
}

export function parameterTable(parameters: Parameter[]): Html {
  return table(
    ['parameter', 'in', 'description'],
    parameters.map(({ name, in: where, required, description, schema }) => {
      const { path: _, ...row } = rowsOf({ properties: { [name]: schema } }, {})[0]!;
      return html`<tr>
<td><code>${name}</code></td>
<td class="type">${where}${required && html` <b>required</b>`}</td>
<td>${inline(description)}${limits(row.limits)}</td>
</tr>
`;
    }),
  );
}

export function headerTable(headers: Record<string, Header>): Html {
  return table(
    ['header', 'example', 'description'],
    Object.entries(headers).map(
      ([name, { description, example }]) => html`<tr>
<td><code>${name}</code></td>
<td class="type"><code>${example}</code></td>
<td>${inline(description)}</td>
</tr>
`,
    ),
  );
}

export function errorTable(errors: { status: string; code: string; when: string }[]): Html {
  return table(
    ['error', 'status', 'when'],
    errors.map(
      ({ status, code, when }) => html`<tr>
<td><code>${code}</code></td>
<td class="type">${status}</td>
<td>${inline(when)}</td>
</tr>
`,
    ),
  );
}

function table(head: string[], rows: Html[]): Html {
  return html`<table class="fields">
<thead><tr>${head.map((cell) => html`<th scope="col">${cell}</th>`)}</tr></thead>
<tbody>${rows}</tbody>
</table>
`;
}

function fieldRow(row: Row, of: 'request' | 'answer'): Html {
  const mark = of === 'request' ? row.required && html` <b>required</b>` : !row.required && ' (optional)';
  return html`<tr>
<td><code>${row.path}</code></td>
<td class="type">${row.type}${mark}</td>
<td>${inline(row.description)}${limits(row.limits)}${row.only && limits([`with type ${row.only.join(', ')}`])}</td>
</tr>
`;
}

function limits(list: string[]): Html {
  return html`${list.map((limit) => html` <span class="limit">${limit}</span>`)}`;
}
