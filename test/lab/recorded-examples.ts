/**
 * Holds answers of a real server against the examples that the OpenAPI document has for them; what differs from one
 * call and one machine to the next is masked. UPDATE_GOLDEN=1 records the answers instead, with ids, times, addresses
 * and secrets that are the same each time: read the diff.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import type { ExecutionContext, TestFn } from 'ava';
import type { RecordedExamples } from '#front/api/openapi/recorded-examples.ts';

export type Hold = ReturnType<typeof holdExamples>;

/** `file` has the examples of one test file, and no others. */
export function holdExamples(test: TestFn, file: string) {
  const url = new URL(`../../src/front/api/openapi/${file}`, import.meta.url);
  const recorded: RecordedExamples = JSON.parse(readFileSync(url, 'utf8'));
  const answered: RecordedExamples = {};
  test.after('every recorded example was seen', (t) => {
    if (process.env.UPDATE_GOLDEN) writeFileSync(url, written(answered));
    t.deepEqual(
      Object.keys(process.env.UPDATE_GOLDEN ? answered : recorded).sort(),
      Object.keys(answered).sort(),
    );
  });
  return (t: ExecutionContext, key: string, value: unknown, summary?: string) => {
    const known = recorded[key];
    const isSame = known !== undefined && isDeepStrictEqual(masked(value), masked(known.value));
    const shown = key.includes(' request ') ? value : isSame ? known.value : normalized(value);
    answered[key] = { ...(summary !== undefined && { summary }), value: shown };
    if (process.env.UPDATE_GOLDEN) return;
    t.deepEqual(masked(value), masked(known?.value ?? null), key);
    t.is(summary, known?.summary, key);
  };
}

/** One example a line; those of one body in the order in which the test has them. */
function written(examples: RecordedExamples): string {
  const body = (key: string) => key.slice(0, key.lastIndexOf(' '));
  const sorted = Object.entries(examples).sort(([a], [b]) => body(a).localeCompare(body(b)));
  const lines = sorted.map(([key, example]) => `  ${JSON.stringify(key)}: ${JSON.stringify(example)}`);
  return `{\n${lines.join(',\n')}\n}\n`;
}

const uuid = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;
const time = /\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z/g;

/** What is different for each call, with what stands for it in an example. */
const substitutes: [pattern: RegExp, shown: string][] = [
  [/(["<])[\w-]{32}@/g, '$1AZjJpG8efVKzpF8Mix2eJ48dLDtKWWh3@'],
  [/\b\d+\.\d+\.\d+\.\d+\b/g, '203.0.113.25'],
  [/"hint":"[^"]*"/g, '"hint":"em_5Zq0mD"'],
  [/\b[A-Z][a-z]{2}, \d\d? [A-Z][a-z]{2} \d{4} [\d:]{8} /g, 'Mon, 02 Mar 2026 08:15:30 '],
  [/\bt=\d{10}; /g, 't=1772439330; '],
  [/\b(bh?)=[\w+/ ]{20,}=*/g, '$1=AmAg6vLOUsHO9VNqkFQtxBqkZAeZ5p7y'],
  [/Its domains: sender\.invalid/g, 'Its domains: example.net'],
  [/"size":\d+/g, '"size":912'],
  [/org-[0-9a-f]{12}:postern-[0-9a-f]{6}/g, 'org-8cb6a1f0d3e9:postern-3b9c41'],
  [/\bem_[\w-]{20,}/g, 'em_5Zq0mD2nYw9cVb7LkT1xRj4sGh8uPa3e'],
  [/whsec_[\w+/]+=*/g, 'whsec_dGhpcyBpcyBub3QgYSBzZWNyZXQhIQ=='],
  [/pstn[0-9a-f]{8}/g, 'pstn4f2a91c0'],
  [/p=[\w+/=]{16,}/g, 'p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA'],
  [/("next":"|id: )[\w-]{22}(?![\w-])/g, '$1Sdb2qZkJH1v0X8oHqk2XfA'],
  [/"durationMs":\d+/g, '"durationMs":84'],
  [/"port":\d+/g, '"port":25'],
  [/"verified":(true|false)/g, '"verified":true'],
];

function substituted(value: unknown): string {
  return substitutes.reduce(
    (text, [pattern, shown]) => text.replace(pattern, shown),
    JSON.stringify(value) ?? 'null',
  );
}

function masked(value: unknown): unknown {
  return JSON.parse(substituted(value).replace(uuid, 'UUID').replace(time, 'TIME'));
}

const firstId = 0x5f0c8b1d9e27;
const firstTime = Date.parse('2026-03-02T08:15:30.120Z');

/** Different ids stay different, and times keep their distances. */
function normalized(value: unknown): unknown {
  const text = substituted(value);
  const ids = [...new Set(text.match(uuid))];
  const earliest = Math.min(...(text.match(time) ?? []).map((one) => Date.parse(one)));
  return JSON.parse(
    text
      .replace(uuid, (id) => `0198c9a4-6f1e-7d52-b3a4-${(firstId + ids.indexOf(id)).toString(16)}`)
      .replace(time, (one) => new Date(firstTime + Date.parse(one) - earliest).toISOString()),
  );
}
