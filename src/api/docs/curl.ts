/** An example as the curl command that sends it. The key is in the shell's variable, as it should be. */
import type { Operation } from '../openapi/openapi-types.ts';

export interface Call {
  baseUrl: string;
  path: string;
  method: string;
  operation: Operation;
  body?: { type: 'application/json' | 'text/csv'; value: unknown };
}

export function curl({ baseUrl, path, method, operation, body }: Call): string {
  const filled = operation.parameters.reduce(
    (text, { name, example }) => text.replace(`{${name}}`, example ?? name),
    path,
  );
  // With data curl says POST, without GET.
  const isSaid = method === (body ? 'POST' : 'GET');
  const lines = [`curl ${isSaid ? '' : `-X ${method} `}${baseUrl}${filled}`];
  if (operation.security.length > 0) lines.push('-H "Authorization: Bearer $POSTERN_KEY"');
  if (body !== undefined) {
    const isJson = body.type === 'application/json';
    const text = isJson ? JSON.stringify(body.value, null, 2) : String(body.value);
    lines.push(`-H "Content-Type: ${body.type}"`, `${isJson ? '-d' : '--data-binary'} ${quoted(text)}`);
  }
  return lines.join(' \\\n  ');
}

/** For a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
