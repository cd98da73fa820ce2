/** From a domain and its hosts to a destination: its name, and the shape that the rules give it. */
import test from 'ava';
import { table } from '#lab/table.ts';
import { loadShaping } from '#platform/settings/shaping-file.ts';
import { createDestinationOf, defaultShape, type ShapingRule } from '#platform/settings/shaping-rules.ts';
import type { DestinationShape } from '#platform/values/destination-shape.ts';

const fallback = defaultShape(20);

const byDomain = (
  domains: string[],
  fields: Partial<DestinationShape> = {},
  name: string | null = null,
): ShapingRule => ({
  by: 'domain',
  domains,
  name,
  fields,
});
const byMx = (
  suffixes: string[],
  fields: Partial<DestinationShape> = {},
  name: string | null = null,
): ShapingRule => ({
  by: 'mx',
  suffixes,
  name,
  fields,
});
const byName = (names: string[], fields: Partial<DestinationShape>): ShapingRule => ({
  by: 'destination',
  names,
  fields,
});

test('without rules: the hosts are the name, in one order and one spelling, and the shape is the usual', (t) => {
  const find = createDestinationOf([], fallback);
  t.deepEqual(find('a.example', ['MX2.b.example.', 'mx1.b.example']), {
    name: 'mx1.b.example,mx2.b.example',
    shape: fallback,
  });
  t.is(find('other.example', ['mx1.b.example', 'mx2.b.example']).name, 'mx1.b.example,mx2.b.example');
  t.is(find('a.example', []).name, 'a.example', 'no hosts: the domain');
});

test('a rule by domain sets its domain apart from the others with the same hosts', (t) => {
  const find = createDestinationOf([byDomain(['a.example', 'b.example'], { connections: 2 })], fallback);
  const hosts = ['mx.example'];
  t.like(find('a.example', hosts), { name: 'a.example', shape: { connections: 2 } });
  t.like(find('b.example', hosts), { name: 'b.example', shape: { connections: 2 } });
  t.like(find('c.example', hosts), { name: 'mx.example', shape: { connections: 20 } });
});

test('a name makes one destination of several domains', (t) => {
  const find = createDestinationOf([byDomain(['a.example', 'b.example'], {}, 'both')], fallback);
  t.is(find('a.example', ['mx.a.example']).name, 'both');
  t.is(find('b.example', ['mx.b.example']).name, 'both');
});

test('a rule by MX is for domains all of whose hosts match', (t) => {
  const find = createDestinationOf([byMx(['.google.test', '.googlemail.test'], {}, 'google')], fallback);
  t.is(find('a.example', ['aspmx.l.google.test', 'ASPMX2.googlemail.test.']).name, 'google');
  t.is(find('a.example', ['aspmx.google.test', 'mx.a.example']).name, 'aspmx.google.test,mx.a.example');
  t.is(find('a.example', ['notgoogle.test']).name, 'notgoogle.test');
  t.is(find('google.test', []).name, 'google.test', 'without hosts there is nothing to match');
});

test('a suffix without its dot is a whole host', (t) => {
  const find = createDestinationOf([byMx(['mx.a.example'], { connections: 1 })], fallback);
  t.is(find('a.example', ['mx.a.example']).shape.connections, 1);
  t.is(find('a.example', ['x.mx.a.example']).shape.connections, 20);
});

test('of each field, the first rule that applies decides', (t) => {
  const rules = [
    byMx(['.mx.example'], { connections: 3 }),
    byMx(['.example'], { connections: 9, idleMs: 1000, perMinute: null }),
    byMx(['.example'], { perMinute: 60, tls: 'encrypted' }),
  ];
  const { name, shape } = createDestinationOf(rules, fallback)('a.example', ['1.mx.example']);
  t.is(name, '1.mx.example');
  t.deepEqual(shape, {
    ...fallback,
    connections: 3,
    startWith: 3,
    idleMs: 1000,
    perMinute: null,
    tls: 'encrypted',
  });
});

test('a domain set apart at a provider keeps to what its hosts are known to bear', (t) => {
  const rules = [
    byMx(['.google.test'], { connections: 5, mailsPerConnection: 50 }, 'google'),
    byDomain(['big.example'], { connections: 2 }),
  ];
  const find = createDestinationOf(rules, fallback);
  const big = find('big.example', ['mx.google.test']);
  t.is(big.name, 'big.example', 'the domain decides, wherever its rule stands');
  t.is(big.shape.connections, 5, 'the order of the rules decides on the fields');
  t.is(
    createDestinationOf(rules.toReversed(), fallback)('big.example', ['mx.google.test']).shape.connections,
    2,
  );
  t.is(big.shape.mailsPerConnection, 50);
});

test('a destination is shaped by the name that it has', (t) => {
  const google = byMx(['.google.test'], { connections: 5, mailsPerConnection: 50 }, 'google');
  const rules = [byName(['google', 'mx1.example,mx2.example'], { connections: 1 }), google];
  const find = createDestinationOf(rules, fallback);
  const { shape } = find('a.example', ['mx.google.test']);
  t.like(shape, { connections: 1, mailsPerConnection: 50, startWith: 1 });
  t.is(find('b.example', ['mx2.example', 'mx1.example']).shape.connections, 1);
  t.is(find('b.example', ['mx2.example']).shape.connections, 20);
});

test('destinations of one name have one shape, whichever domain comes first', (t) => {
  const rules = [
    byMx(['.l.google.test'], { connections: 1 }),
    byMx(['.google.test'], { connections: 5 }, 'google'),
    byDomain(['a.example', 'b.example'], { connections: 7 }, 'google'),
    byMx(['.other.test'], { connections: 9 }),
  ];
  const find = createDestinationOf(rules, fallback);
  const all = [
    find('x.example', ['mx.google.test']),
    find('a.example', ['mx.other.test']),
    find('b.example', ['1.l.google.test']),
  ];
  for (const { name, shape } of all) t.deepEqual([name, shape.connections], ['google', 5]);
  t.like(find('x.example', ['1.l.google.test']), { name: '1.l.google.test', shape: { connections: 1 } });
});

test('a destination never begins with more than it may have', (t) => {
  t.is(defaultShape(2).startWith, 2);
  const { shape } = createDestinationOf([byMx(['.example'], { connections: 3 })], fallback)('a', [
    'mx.example',
  ]);
  t.is(shape.startWith, 3);
});

/** Hosts as the providers publish them today. */
const providers: [domain: string, hosts: string[], name: string, connections: number][] =
  table('settings/providers');

test('the built-in rules know the big providers', (t) => {
  const find = createDestinationOf(loadShaping(null, 20), fallback);
  for (const [domain, hosts, name, connections] of providers) {
    const destination = find(domain, hosts);
    t.deepEqual([destination.name, destination.shape.connections], [name, connections], domain);
  }
});

test('the connections for everybody bound those of the built-in rules', (t) => {
  const find = createDestinationOf(loadShaping(null, 3), defaultShape(3));
  for (const [domain, hosts, , connections] of providers)
    t.is(find(domain, hosts).shape.connections, Math.min(connections, 3), domain);
});
