/** Writes an example as a curl command. The key is a shell variable, so that it does not appear in the command. */
import type { Operation } from '../openapi/openapi-types.ts';

export interface Call {
  baseUrl: string;
  path: string;
  method: string;
  operation: Operation;
  body?: { type: 'application/json' | 'text/csv'; value: unknown };
}

export function curl({ baseUrl, path, method, operation, body }: Call): string {
  const filledPath = operation.parameters.reduce(
    (text, { name, example }) => text.replace(`{${name}}`, example ?? name),
    path,
  );
  // curl uses POST with data and GET without.
  const isDefault = method === (body ? 'POST' : 'GET');
  const lines = [`curl ${isDefault ? '' : `-X ${method} `}${baseUrl}${filledPath}`];
  if (operation.security.length > 0) lines.push('-H "Authorization: Bearer $POSTERN_KEY"');
  if (body !== undefined) {
    const isJson = body.type === 'application/json';
    const text = isJson ? JSON.stringify(body.value, null, 2) : String(body.value);
    lines.push(`-H "Content-Type: ${body.type}"`, `${isJson ? '-d' : '--data-binary'} ${quoted(text)}`);
  }
  return lines.join(' \\\n  ');
}

/** Quotes a text for a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
