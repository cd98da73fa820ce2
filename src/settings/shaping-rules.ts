/**
 * From the rules of the shaping file to the destination that serves a domain: its name and its shape. Pure, and quick
 * enough to be asked at every look-up of a route.
 *
 * First the name. A rule by domain sets its domain apart; else the first rule by MX whose suffixes all of the
 * domain's hosts have decides. Its name is the destination's; without one that is the domain, or the hosts. Then the
 * shape: of each field, what the first rule that applies says. Whatever has one name has one shape, or a limit would
 * depend on who comes first: a name that rules give takes its fields from the rules of that name alone, and any
 * destination from the rules that call it by its name.
 */
import type { DestinationOf, DestinationShape } from '../mail/destination-shape.ts';

export type ShapingRule = { fields: Partial<DestinationShape> } & (
  | { by: 'domain'; domains: string[]; name: string | null }
  /** Suffixes begin with a dot; without one it is a host's whole name. */
  | { by: 'mx'; suffixes: string[]; name: string | null }
  | { by: 'destination'; names: string[] }
);

/**
 * What holds where no rule says otherwise. It begins with 5 connections because Postfix does
 * (initial_destination_concurrency): what most receivers meet every day. An idle connection takes up a place at the
 * other side, so it waits for the next mail of a burst and no longer.
 */
export function defaultShape(connections: number): DestinationShape {
  return {
    connections,
    startWith: Math.min(5, connections),
    perMinute: null,
    mailsPerConnection: 100,
    idleMs: 5000,
    tls: 'opportunistic',
  };
}

export function createDestinationOf(
  rules: readonly ShapingRule[],
  fallback: DestinationShape,
): DestinationOf {
  return (domain, hosts) => {
    const names = [...new Set(hosts.map(plain))].sort();
    const matching = rules.filter((rule) => isFor(rule, domain, names));
    const first = matching.find(({ by }) => by === 'domain') ?? matching[0];
    const given = first && 'name' in first ? first.name : null;
    const name = given ?? (first?.by === 'domain' || names.length === 0 ? domain : names.join(','));
    const applies = (rule: ShapingRule) => {
      if (rule.by === 'destination') return rule.names.includes(name);
      return given === null ? matching.includes(rule) : rule.name === given;
    };
    return { name, shape: shapeOf(rules.filter(applies), fallback) };
  };
}

function plain(host: string): string {
  return host.toLowerCase().replace(/\.$/, '');
}

function isFor(rule: ShapingRule, domain: string, hosts: string[]): boolean {
  if (rule.by === 'domain') return rule.domains.includes(domain);
  if (rule.by === 'destination' || hosts.length === 0) return false;
  const has = (host: string, suffix: string) =>
    suffix.startsWith('.') ? host.endsWith(suffix) : host === suffix;
  return hosts.every((host) => rule.suffixes.some((suffix) => has(host, suffix)));
}

function shapeOf(rules: ShapingRule[], fallback: DestinationShape): DestinationShape {
  const fields = rules.map((rule) => rule.fields).reverse();
  const shape: DestinationShape = Object.assign({}, fallback, ...fields);
  return { ...shape, startWith: Math.min(shape.startWith, shape.connections) };
}
