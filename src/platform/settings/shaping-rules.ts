/**
 * Applies the shaping rules: finds the name and the shape of the destination that serves a domain. Pure, and fast enough to
 * run at every route lookup.
 *
 * The name: a rule that names the domain decides; otherwise the first rule by MX that matches all of the domain's hosts. If
 * that rule gives no name, the destination's name is the domain (rule by domain) or the list of hosts.
 *
 * The shape: each field is taken from the first rule that applies. If a rule gave the name, only rules that give the same
 * name apply, and rules for that destination. So all domains of a destination get the same shape.
 */
import { normalName } from '#platform/base/net/resolve.ts';
import type { DestinationOf, DestinationShape } from '#platform/values/destination-shape.ts';

export type ShapingRule = { fields: Partial<DestinationShape> } & (
  | { by: 'domain'; domains: string[]; name: string | null }
  /** A suffix begins with a dot; a text without one is a complete host name. */
  | { by: 'mx'; suffixes: string[]; name: string | null }
  | { by: 'destination'; names: string[] }
);

/**
 * The shape if no rule says otherwise. It starts with 5 connections, like Postfix (initial_destination_concurrency), because
 * most receivers are used to that. An idle connection occupies a slot at the receiver, so it waits only for the next mail of
 * a burst.
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
    const names = [...new Set(hosts.map(normalName))].sort();
    const matching = rules.filter((rule) => matches(rule, domain, names));
    const first = matching.find(({ by }) => by === 'domain') ?? matching[0];
    const givenName = first && 'name' in first ? first.name : null;
    const name = givenName ?? (first?.by === 'domain' || names.length === 0 ? domain : names.join(','));
    const applies = (rule: ShapingRule) => {
      if (rule.by === 'destination') return rule.names.includes(name);
      return givenName === null ? matching.includes(rule) : rule.name === givenName;
    };
    return { name, shape: shapeOf(rules.filter(applies), fallback) };
  };
}

function matches(rule: ShapingRule, domain: string, hosts: string[]): boolean {
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
