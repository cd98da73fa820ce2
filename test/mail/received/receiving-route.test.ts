/** Receiving routes: which pattern takes which address, the order that decides, and patterns that are refused. */
import test from 'ava';
import type { ReceivingRoute } from '#mail/received/received-mail.ts';
import { routeFor } from '#mail/received/receiving-route.ts';
import { parseReply, replyText } from '#mail/received/reject-reply.ts';
import {
  defaultPriorities,
  isSamePattern,
  maxSteps,
  parsePattern,
  stepsOf,
} from '#mail/received/route-pattern.ts';

function routeOf(given: string, id = given): ReceivingRoute {
  const pattern = parsePattern(given);
  if ('problem' in pattern) throw new Error(pattern.problem);
  return {
    id,
    orgId: 'acme',
    domain: pattern.domain,
    priority: defaultPriorities[pattern.kind],
    pattern: pattern.text,
    action: 'store',
    webhookId: null,
    reply: null,
    dmarc: 'accept',
    largest: null,
    createdAt: 0,
    updatedAt: 0,
  };
}

const problemOf = (given: string) => {
  const parsed = parsePattern(given);
  return 'problem' in parsed ? parsed.problem : null;
};

/** A pattern, the addresses that it takes, and those that it does not. */
const table: [string, string[], string[]][] = [
  [
    'orders@x.test',
    ['orders@x.test', 'ORDERS@X.Test', '"orders"@x.test', 'orders@x.test.'],
    ['orders+1@x.test', 'orders@y.test', 'orders@a.x.test', 'xorders@x.test', 'orders', ''],
  ],
  [
    'orders+*@x.test',
    ['orders+17@x.test', 'Orders+A.b@x.test', 'orders+@x.test', 'orders+a+b@x.test'],
    ['orders@x.test', 'orders-17@x.test', 'orders+1@y.test'],
  ],
  ['notifications-*@x.test', ['notifications-4@x.test'], ['user@x.test', 'notifications@x.test']],
  ['a*a@x.test', ['aa@x.test', 'aba@x.test'], ['a@x.test']],
  ['*@x.test', ['any@x.test', `${'a'.repeat(200)}@x.test`], ['any@y.test']],
  ['x.test', ['any@x.test'], ['any@sub.x.test']],
  ['bücher.test', ['any@xn--bcher-kva.test', 'any@BÜCHER.test'], ['any@bucher.test']],
  ['jürgen@x.test', ['JÜRGEN@x.test', 'ju\u0308rgen@x.test'], ['jurgen@x.test']],
  [
    '/ticket-[0-9]+/@x.test',
    ['ticket-17@x.test', 'TICKET-17@x.test'],
    ['ticket-@x.test', 'my-ticket-17@x.test', 'ticket-17a@x.test', 'ticket-17@y.test'],
  ],
  ['/"(a|b)@c"/@x.test', ['"a@c"@x.test'], ['a@x.test']],
  ['/.*/@x.test', ['any@x.test'], [`${'a'.repeat(300)}@x.test`]],
];

test('a pattern takes its addresses, and no others', (t) => {
  for (const [pattern, taken, left] of table) {
    const routes = [routeOf(pattern)];
    for (const address of taken) t.truthy(routeFor(routes, address), `${pattern} takes ${address}`);
    for (const address of left) t.is(routeFor(routes, address), null, `${pattern} leaves ${address}`);
  }
});

test('letter case makes another pattern only of an expression', (t) => {
  t.true(isSamePattern('Orders@x.test', 'orders@x.test'));
  t.true(isSamePattern('/a/@x.test', '/a/@x.test'));
  t.false(isSamePattern(String.raw`/\d+/@x.test`, String.raw`/\D+/@x.test`));
});

test('the first route decides; without a priority of its own, the narrower comes first', (t) => {
  const given = ['*@x.test', '/[a-z]+/@x.test', 'admin*@x.test', 'admin@x.test', '*@y.test'];
  const routes = given.map((pattern) => routeOf(pattern)).sort((a, b) => a.priority - b.priority);
  const idFor = (address: string) => routeFor(routes, address)?.id;
  t.is(idFor('admin@x.test'), 'admin@x.test');
  t.is(idFor('admin2@x.test'), 'admin*@x.test');
  t.is(idFor('bob@x.test'), '/[a-z]+/@x.test');
  t.is(idFor('bob.2@x.test'), '*@x.test');
  t.is(idFor('bob@y.test'), '*@y.test');
});

test('a pattern that means nothing, or too much, is refused with a reason', (t) => {
  const refused: [string, RegExp][] = [
    ['', /has no domain name/],
    ['orders@', /has no domain name/],
    ['orders', /has no domain name/],
    ['@x.test', /none of them/],
    ['a b@x.test', /none of them/],
    ['a@b@x.test', /none of them/],
    ['**@x.test', /at most one \*/],
    ['*@*.x.test', /each subdomain that receives is registered/],
    ['ord\u200bers@x.test', /without the zero width space/],
    ['/ord\u200bers/@x.test', /cannot be seen.*without the zero width space/],
    ['/a\0b/@x.test', /cannot be seen/],
    ['a'.repeat(6_000_000), /at most 254 characters/],
    [`/${'a{1000}'.repeat(20)}/@x.test`, /too large: 20\d\d\d steps, of 300 at most/],
    ['/((a{100}){100}){100}/@x.test', /invalid repeat count/],
    ['/(a{0,1000}){0,1000}/@x.test', /not an expression in RE2's syntax.*too large/],
    ['/(?=a)b/@x.test', /no look-around/],
    [String.raw`/(a)\1/@x.test`, /no back references/],
    ['/(/@x.test', /missing closing/],
  ];
  for (const [pattern, reason] of refused)
    t.regex(problemOf(pattern) ?? 'taken', reason, pattern.slice(0, 50));
});

test('expressions that never end elsewhere end here', (t) => {
  const patterns = [
    '/(a+)+/@x.test',
    '/((a*)*)*b/@x.test',
    '/(.*)(.*)(.*)(.*)(.*)(.*)c/@x.test',
    '/(a|a|aa)+$/@x.test',
  ];
  const address = `${'a'.repeat(125)}!@x.test`;
  const largest = `/(?:a|b|ab|.*a.{60}|.*b.{70}|.*c.{80}){1}/@x.test`;
  t.true(stepsOf(largest) > 200 && stepsOf(largest) <= maxSteps);
  for (const pattern of [...patterns, largest]) {
    const routes = [routeOf(pattern)];
    for (let n = 0; n < 10; n++) t.notThrows(() => routeFor(routes, `${n}${address}`), pattern);
  }
});

test('a reply is one of its own kind, or refused', (t) => {
  const taken = {
    '550 5.7.1 No replies here': '550 5.7.1 No replies here',
    '554 Go away': '554 5.7.1 Go away',
    ' 550 5.1.1 <x@y.test>: (unknown) ': '550 5.1.1 <x@y.test>: (unknown)',
  };
  for (const [given, canonical] of Object.entries(taken)) t.is(replyText(parseReply(given)!), canonical);
  const refused = [
    ...[
      '250 OK',
      '450 4.7.1 Later',
      '550',
      '550 ',
      '560 5.1.1 x',
      '550-5.1.1 x',
      '550 ü',
      '550 a\r\n250 OK',
      'no',
    ],
    `550 ${'x'.repeat(200)}`,
  ];
  for (const given of refused) t.is(parseReply(given), null, given);
});
