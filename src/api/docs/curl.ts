/** An example as the curl command that sends it. The key is in the shell's variable, as it should be. */
import type { Operation } from '../openapi/document.ts';

export interface Call {
  baseUrl: string;
  path: string;
  operation: Operation;
  body?: unknown;
}

export function curl({ baseUrl, path, operation, body }: Call): string {
  const filled = operation.parameters.reduce(
    (text, { name, example }) => text.replace(`{${name}}`, example ?? name),
    path,
  );
  const lines = [`curl ${baseUrl}${filled}`];
  if (operation.security.length > 0) lines.push('-H "Authorization: Bearer $POSTERN_KEY"');
  if (body !== undefined) {
    lines.push('-H "Content-Type: application/json"', `-d ${quoted(JSON.stringify(body, null, 2))}`);
  }
  return lines.join(' \\\n  ');
}

/** For a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
