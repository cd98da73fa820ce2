/** Reads test/fixtures/contract/fields.txt, which says what its lines mean. */
import { readFileSync } from 'node:fs';
import { people, someone } from './client.ts';

type Fields = Record<string, unknown>;

export interface Sentence {
  sentence: string;
  isAlone: boolean;
  takes: Fields[];
  refuses: { path: string; fields: Fields }[];
}

const file = new URL('../fixtures/contract/fields.txt', import.meta.url);

export function readSentences(): Sentence[] {
  const sentences: Sentence[] = [];
  const lists = new Map<string, string[]>();
  const lines = readFileSync(file, 'utf8').split('\n');
  for (const line of lines.slice(lines.findIndex((one) => one.startsWith('let ')))) {
    const [, sign, first, rest = ''] = /^(let|[#+-]) (\S+) ?(.*)$/.exec(line) ?? [];
    if (sign === 'let') lists.set(first!, valuesOf(rest, lists));
    else if (sign === '#') {
      const [sentence, alone] = `${first} ${rest}`.split(/ (alone)$/);
      sentences.push({ sentence: sentence!, isAlone: alone !== undefined, takes: [], refuses: [] });
    } else if (sign) {
      const { takes, refuses } = sentences.at(-1)!;
      const [values, path = first] = rest.split(' => ');
      for (const [value, issue] of expanded(values!, path!, lists))
        if (sign === '+') takes.push(fieldsOf(first!, value));
        else refuses.push({ path: issue, fields: fieldsOf(first!, value) });
    }
  }
  return sentences;
}

/** JSON texts, the names of lists replaced by what they stand for. */
function valuesOf(text: string, lists: Map<string, string[]>): string[] {
  return text.split(' | ').flatMap((one) => lists.get(one) ?? [one]);
}

/** Each value with the path of its issue, in which the same element of a list stands as in the value. */
function expanded(values: string, path: string, lists: Map<string, string[]>): [unknown, string][] {
  return valuesOf(values, lists).flatMap((json) => {
    const [, name = ''] = /\{(\w+)\}/.exec(json) ?? [];
    const elements = lists.get(name) ?? [null];
    return elements.map((element): [unknown, string] => {
      const put = (text: string, as: string) =>
        element === null ? text : text.replace(`{${name}}`, () => as);
      const value = JSON.parse(put(json, element?.slice(1, -1) ?? ''), revive);
      return [value, repeated(put(path, element === null ? '' : JSON.parse(element)))];
    });
  });
}

const repeated = (text: string) => text.replace(/\{(.)\*(\d+)\}/gu, (_, one, times) => one.repeat(times));

function revive(_: string, value: unknown): unknown {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return Object.fromEntries(Object.entries(value).flatMap(numbered));
  if (value === '(absent)') return absent;
  if (value === '(someone)') return someone();
  const [, count] = /^\((\d+) people\)$/.exec(String(value)) ?? [];
  if (count) return people(Number(count));
  return typeof value === 'string' ? repeated(value) : value;
}

/** JSON.parse would leave out a member that is undefined. */
const absent = Symbol('absent');

function numbered([name, value]: [string, unknown]): [string, unknown][] {
  const [mark, count = '1'] = /\{(\d+)\}/.exec(name) ?? [''];
  return Array.from({ length: Number(count) }, (_, n) => [
    repeated(mark ? name.replace(mark, String(n)) : name),
    value,
  ]);
}

function fieldsOf(field: string, value: unknown): Fields {
  const given = value === absent ? undefined : value;
  const [, member, index, inner] = /^(\w+)(\.0)?\.(.+)$/.exec(field) ?? [];
  if (field === '*')
    return Object.fromEntries(
      Object.entries(value as Fields).map(([name, one]) => [name, one === absent ? undefined : one]),
    );
  if (!member) return { [field]: given };
  if (index) return { attachments: [{ filename: 'a.txt', content: 'aGk=', [inner!]: given }] };
  return { [member]: { [inner!]: given } };
}
