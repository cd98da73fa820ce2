/**
 * Every regular expression of src/ takes time that is linear in the text. One that does not, such as /[ \t]+$/ or /<.*>/,
 * stops the process for seconds at a text of 100 KB that nearly matches. Two judges, because neither finds all: scslre, the
 * engine of eslint-plugin-regexp, and a measurement with texts that are made from the expression.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AST, RegExpParser } from '@eslint-community/regexpp';
import test from 'ava';
import { parseSync, Visitor } from 'oxc-parser';
import { analyse } from 'scslre';
import { threadMs } from '#lab/thread-time.ts';

interface Expression {
  where: string;
  source: string;
  flags: string;
}

const src = join(import.meta.dirname, '../../src');

/** Expressions that never see a text of a caller or a stranger, with the reason. */
const allowed: Record<string, string> = {
  "cli/postern.ts  argument '.*?' is invalid\\. ":
    'reads the message of commander about the arguments of the command line',
  'platform/database/schema/partitions.ts ^FOR VALUES FROM \\((.+)\\) TO \\((.+)\\)$':
    'reads the bounds that PostgreSQL wrote',
};

/** `new RegExp` with a pattern that is not a literal, with the reason why its texts are harmless. */
const constructed: Record<string, string> = {
  'platform/values/diagnostic.ts': 'constants joined; its test measures them',
  'mail/returned/parse/text-bounces/general.ts':
    'constants joined, matched at the beginning of the text only',
  'mail/returned/parse/named-recipient.ts':
    'constants joined, each part bounded; test/mail/returned/misread-bounces.test.ts measures them',
  'cli/maillog/log-filter.ts': 'an id, escaped',
  'mail/compose/header-grammar.ts': 'sticky, each part bounded; its test measures it',
  'mail/deliver/reply-rules/general-refusals.ts': 'constants joined; test/reply-rules measures them',
  'mail/deliver/reply-rules/mailbox-words.ts': 'constants joined; test/reply-rules measures them',
  'mail/deliver/reply-rules/message-words.ts': 'constants joined; test/reply-rules measures them',
  'mail/deliver/reply-rules/reputation-words.ts': 'constants joined; test/reply-rules measures them',
  'mail/deliver/reply-rules/retry-after.ts': 'constants joined; test/reply-rules measures them',
  'mail/deliver/reply-rules/sender-words.ts': 'constants joined; test/reply-rules measures them',
  'mail/deliver/reply-rules/unknown-user-words.ts':
    'constants joined, each part bounded; test/reply-rules measures them',
};

function expressionsOf(file: string): { literals: Expression[]; constructors: number } {
  const literals: Expression[] = [];
  let constructors = 0;
  const visitor = new Visitor({
    Literal(node) {
      if (!('regex' in node)) return;
      const { pattern, flags } = node.regex;
      literals.push({ where: `${file} ${pattern}`, source: pattern, flags });
    },
    NewExpression({ callee }) {
      if (callee.type === 'Identifier' && callee.name === 'RegExp') constructors += 1;
    },
  });
  visitor.visit(parseSync(file, readFileSync(join(src, file), 'utf8')).program);
  return { literals, constructors };
}

const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
const found = files.map((file) => ({ file, ...expressionsOf(file) }));
const all = [...new Map(found.flatMap(({ literals }) => literals).map((one) => [one.where, one])).values()];

const isProven = ({ source, flags }: Expression) => analyse({ source, flags }).reports.length > 0;

/** Some texts that the element matches; '' where it only asserts something. */
function samples(node: AST.Node, flags: string): string[] {
  switch (node.type) {
    case 'Pattern':
    case 'Group':
    case 'CapturingGroup':
      return node.alternatives.flatMap((one) => samples(one, flags).slice(0, 2)).slice(0, 6);
    case 'Alternative': {
      const each = node.elements.map((one) => samples(one, flags));
      return [0, 1].map((pick) => each.map((some) => some[pick % some.length] ?? '').join(''));
    }
    case 'Character':
      return [String.fromCodePoint(node.value)];
    case 'CharacterClass':
    case 'CharacterSet': {
      const member = new RegExp(`^(?:${node.raw})$`, flags.replace(/[gy]/g, ''));
      return probes.filter((one) => member.test(one));
    }
    case 'Quantifier':
      return samples(node.element, flags).map((one) =>
        one.repeat(Math.max(node.min, node.max === 0 ? 0 : 1)),
      );
    default:
      return [''];
  }
}

const probes = [...'a1 \t\n-.<>"@,/\\=([:Aé_\r\0&%+{#\'!'];

/** Pairs of a beginning and what is repeated after it: each long repetition, and each with what comes before it. */
function attacks(node: AST.Node, flags: string, before = ''): [start: string, repeated: string][] {
  if ('alternatives' in node) return node.alternatives.flatMap((one) => attacks(one, flags, before));
  if (node.type === 'Alternative') {
    let prefix = before;
    return node.elements.flatMap((one) => {
      const here = attacks(one, flags, prefix);
      prefix += samples(one, flags)[0] ?? '';
      return here;
    });
  }
  if (node.type !== 'Quantifier') return [];
  const own = node.max < 20 ? [] : samples(node.element, flags).filter(Boolean).slice(0, 6);
  return [
    ...own.flatMap((one): [string, string][] => [
      [before, one],
      ['', before + one],
      ['', before.slice(-2) + one],
      ['', before + one.repeat(40)],
    ]),
    ...attacks(node.element, flags, before),
  ];
}

const size = 4096;

function run({ source, flags }: Expression, [start, repeated]: [string, string], length: number): void {
  const text = `${start}${repeated.repeat(Math.ceil(length / repeated.length))}`;
  const expression = new RegExp(source, flags.includes('g') ? flags : `${flags}g`);
  for (const end of ['\0', '\n']) (text + end).replace(expression, '');
}

function isSlow(one: Expression, attack: [string, string]): boolean {
  const before = performance.now();
  run(one, attack, size);
  // Linear ones take microseconds; a fast machine needs 3 ms for the cheapest square.
  if (performance.now() - before < 1.5) return false;
  // Four times the text takes sixteen times as long if the time grows with the square. The kernel counts in steps of 4 ms.
  const cpu = (length: number) => {
    const start = threadMs();
    run(one, attack, length);
    return threadMs() - start;
  };
  // Other work on the machine only adds to a time, so one that is short enough is an answer.
  const isSquare = (times: number) => {
    const short = Math.min(...Array.from({ length: times }, () => cpu(2 * size)));
    return Array.from({ length: times }).every(() => cpu(8 * size) > 8 * Math.max(short, 8));
  };
  return isSquare(2) && isSquare(4);
}

function isMeasured(one: Expression): boolean {
  const tree = new RegExpParser().parsePattern(one.source, 0, one.source.length, {
    unicode: one.flags.includes('u'),
  });
  const whole = samples(tree, one.flags)
    .filter(Boolean)
    .map((text): [string, string] => ['', text]);
  return [...whole, ...attacks(tree, one.flags)].some((attack) => isSlow(one, attack));
}

test('every regular expression of src/ is linear in the text', (t) => {
  t.true(all.length > 500, 'few expressions found');
  const known = new Set(Object.keys(allowed));
  const slow = all.filter((one) => !known.has(one.where) && (isProven(one) || isMeasured(one)));
  t.deepEqual(slow, []);
  t.deepEqual(
    [...known].filter((where) => !all.some((one) => one.where === where)),
    [],
  );
  t.log(`${all.length} expressions`);
});

test('a regular expression is made at run time only where this is known to be harmless', (t) => {
  const makers = found.filter(({ constructors }) => constructors > 0).map(({ file }) => file);
  t.deepEqual(makers.sort(), Object.keys(constructed).sort());
});

test('the two judges find what is not linear', (t) => {
  const slow = [
    '[ \\t]+$',
    '\\s+OR',
    '(a|b)*c',
    '.*x',
    '<[^>]*>',
    '<!--.*?-->',
    '^\\s*(M)?\\s*$',
    '(?:[a-z]+\\.)+x',
  ];
  const linear = ['(?<![ \\t])[ \\t]+$', '"[^"]*"', '^[^@]+@[^@]+$', '\\[[^\\]]{1,300}\\]'];
  const isFound = (source: string) => {
    const one = { where: '', source, flags: 's' };
    return isProven(one) || isMeasured(one);
  };
  t.deepEqual([...slow, ...linear].filter(isFound), slow);
});
