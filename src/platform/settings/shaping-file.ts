/**
 * Reads the shaping rules, at start and when the file changes (current-shaping.ts). The rules of the operator's file
 * (POSTERN_SHAPING_FILE) come before the built-in ones in config/shaping.jsonc, which `"builtIn": false` disables. A file
 * with errors stops the start: a ConfigError has a line for each, with the rule, the field, the expected value and the
 * line. shaping-rules.ts applies the rules.
 */
import { join } from 'node:path';
import { findNodeAtLocation, getNodeValue, type Node } from 'jsonc-parser';
import { z } from 'zod';
import type { DestinationShape } from '#platform/values/destination-shape.ts';
import { ConfigError } from './config-error.ts';
import { type Jsonc, readJsonc } from './jsonc.ts';
import { shapingFields, shapingRule, type WrittenRule } from './shaping-fields.ts';
import type { ShapingRule } from './shaping-rules.ts';

const builtInFile = join(import.meta.dirname, '../../../config/shaping.jsonc');

const ruleFields = shapingFields.map(({ name }) => name);

const shapingFile = z.strictObject({
  builtIn: z.boolean('give true or false').default(true),
  rules: z.array(shapingRule, 'give the rules in an array').default([]),
});

/**
 * The operator's rules, then the built-in ones. `perDestination` (POSTERN_MTA_PER_DESTINATION) limits the connections of the
 * built-in rules, which are for the big providers, but not those of the operator's own rules.
 */
export function loadShaping(path: string | null, perDestination: number): ShapingRule[] {
  const own = path === null ? null : readRules(path, 'POSTERN_SHAPING_FILE');
  const builtIn = own?.builtIn === false ? [] : readRules(builtInFile, 'built-in shaping').rules;
  return [...(own?.rules ?? []), ...builtIn.map((rule) => atMost(rule, perDestination))];
}

function atMost(rule: ShapingRule, max: number): ShapingRule {
  const { connections } = rule.fields;
  if (connections === undefined || connections <= max) return rule;
  return { ...rule, fields: { ...rule.fields, connections: max } };
}

function readRules(path: string, origin: string): { builtIn: boolean; rules: ShapingRule[] } {
  const file = readJsonc(path);
  if (typeof file === 'string') throw new ConfigError([`${origin}: ${file}`]);
  if (file.root?.type !== 'object')
    throw new ConfigError([`${origin}: ${path} is not a JSON object; write { "rules": [ … ] }`]);
  const read = shapingFile.safeParse(getNodeValue(file.root));
  const problems = [...(read.error?.issues.flatMap(problemsOf) ?? []), ...repeatsIn(file.root)];
  if (problems.length === 0 && read.success)
    return { builtIn: read.data.builtIn, rules: read.data.rules.map(ruleOf) };
  throw new ConfigError(problems.map((problem) => `${origin}: ${located(problem, file, path)}`));
}

interface Problem {
  path: PropertyKey[];
  message: string;
}

function problemsOf(issue: z.core.$ZodIssue): Problem[] {
  const { path, message } = issue;
  if (issue.code === 'unrecognized_keys') {
    const known = (path.length === 0 ? Object.keys(shapingFile.shape) : ruleFields).join(', ');
    return issue.keys.map((key) => ({
      path: [...path, key],
      message: `no such field; the fields are ${known}`,
    }));
  }
  if (issue.code === 'invalid_type' && issue.expected === 'object')
    return [{ path, message: 'is not an object; write { "domain": …, "connections": … }' }];
  return [{ path, message }];
}

/** JSON parsers silently use the last of several members with the same name. */
function repeatsIn(node: Node, path: PropertyKey[] = []): Problem[] {
  const seen = new Set<string>();
  return (node.children ?? []).flatMap((child, index) => {
    if (node.type === 'array') return repeatsIn(child, [...path, index]);
    const [key, value] = child.children ?? [];
    const at = [...path, key!.value];
    const isRepeat = seen.has(key!.value);
    seen.add(key!.value);
    const repeat = { path: at, message: 'given twice; keep one of them' };
    return [...(isRepeat ? [repeat] : []), ...(value ? repeatsIn(value, at) : [])];
  });
}

/** `rule 3, connections: "many" is not …; give … (FILE, line 14)`; rules are counted from 1. */
function located({ path, message }: Problem, { root, lineOf }: Jsonc, file: string): string {
  const [list, index, name] = path;
  const isRule = list === 'rules' && typeof index === 'number';
  const names = isRule ? [`rule ${index + 1}`, ...(name === undefined ? [] : [name])] : path;
  const node = findNodeAtLocation(root!, path as (string | number)[]) ?? root!;
  return `${names.join(', ')}${names.length > 0 ? ': ' : ''}${message} (${file}, line ${lineOf(node)})`;
}

function ruleOf({ domain, mx, destination, name, idle: idleMs, ...limits }: WrittenRule): ShapingRule {
  const fieldsGiven = Object.entries({ ...limits, idleMs }).filter(([, value]) => value !== undefined);
  const fields: Partial<DestinationShape> = Object.fromEntries(fieldsGiven);
  if (domain) return { by: 'domain', domains: domain, name: name ?? null, fields };
  if (mx) return { by: 'mx', suffixes: mx, name: name ?? null, fields };
  return { by: 'destination', names: destination ?? [], fields };
}
