/**
 * Calls of SDKs, as they write them: test/fixtures/calls/NAME.http. An entry is `### ` and its title, the request line without a
 * version, the fields, an empty line and the body. Lines end with CRLF on the wire; ␊ is an LF alone.
 */
import { readFileSync } from 'node:fs';

const folder = new URL('../fixtures/calls/', import.meta.url);

export interface RecordedCall {
  title: string;
  method: string;
  path: string;
  headers: [name: string, value: string][];
  body: string;
}

export function recordedCalls(name: string): RecordedCall[] {
  const entries = readFileSync(new URL(`${name}.http`, folder), 'utf8')
    .split(/^### /m)
    .slice(1);
  return entries.map((entry) => {
    const [head, ...rest] = entry.trimEnd().split('\n\n');
    const [title, route, ...fields] = head!.split('\n') as [string, string, ...string[]];
    const [method, path] = route.split(' ') as [string, string];
    const headers = fields.map((field) => field.split(/: (.*)/s).slice(0, 2) as [string, string]);
    const isMultipart = fields.some((field) => /^content-type: multipart/i.test(field));
    const text = `${rest.join('\n\n')}${isMultipart ? '\n' : ''}`;
    return { title, method, path, headers, body: text.replaceAll('\n', '\r\n').replaceAll('␊', '\n') };
  });
}
