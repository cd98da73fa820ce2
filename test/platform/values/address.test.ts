import test from 'ava';
import { table } from '#lab/table.ts';
import { compareKey, domainOf, envelopeAddress, parseMailbox, toDomain } from '#platform/values/address.ts';

const of = (character: string, count: number) => character.repeat(count);
/** A domain of exactly `length` characters, in labels that are not too long. */
const domain = (length: number) => `${of(`${of('d', 49)}.`, 5).slice(7 - length)}invalid`;

const valid: [address: string, domain: string][] = table('mail/addresses');

const invalid: [what: string, address: string][] = table('mail/not-addresses');

for (const [address, expected] of valid) {
  test(`valid address: ${address}`, (t) => t.is(domainOf(address), expected));
}

for (const [what, address] of invalid) {
  test(`invalid address: ${what}`, (t) => t.is(domainOf(address), null));
}

test('the longest addresses in these tables have the stated lengths', (t) => {
  t.is(valid.at(-1)![0].length, 254);
  t.is(invalid.at(-2)![1].length, 255);
  t.true(Buffer.byteLength(invalid.at(-1)![1]) < 254, 'only its A-labels make it long');
});

test('a domain name is fully qualified, has at most 253 characters, and is returned as its A-label', (t) => {
  t.is(toDomain('There.INVALID'), 'there.invalid');
  t.is(toDomain('bücher。invalid'), 'xn--bcher-kva.invalid', 'the ideographic full stop is a dot');
  t.is(toDomain(domain(253)), domain(253));
  for (const text of ['', '.', 'localhost', 'there.invalid.', 'a b.invalid', 'a@b.invalid', domain(254)]) {
    t.is(toDomain(text), null, text);
  }
});

const same: [string, string][] = table('mail/same-addresses');

const different: [string, string][] = [
  ['ann@there.invalid', 'ann@here.invalid'],
  ['ann+x@there.invalid', 'ann@there.invalid'],
  ['a.nn@there.invalid', 'ann@there.invalid'],
  ['jörg@there.invalid', 'jorg@there.invalid'],
  ['ann@bücher.invalid', 'ann@bucher.invalid'],
  ['"ann "@there.invalid', 'ann@there.invalid'],
];

test('addresses are compared in lower case, as A-labels, with Unicode normalized', (t) => {
  for (const [one, other] of same) t.is(compareKey(one), compareKey(other), one);
  for (const [one, other] of different) t.not(compareKey(one), compareKey(other), one);
});

test('the envelope address keeps the local part and has the domain as its A-label', (t) => {
  t.is(envelopeAddress('Ann.Lee@BÜCHER.invalid'), 'Ann.Lee@xn--bcher-kva.invalid');
  t.is(envelopeAddress('"a@b"@There.invalid'), '"a@b"@there.invalid');
});

const mailboxes: [text: string, name: string, address: string][] = table('mail/senders');

const noMailboxes: [what: string, text: string][] = table('mail/not-senders');

for (const [text, name, address] of mailboxes) {
  test(`valid sender: ${text}`, (t) =>
    t.deepEqual(parseMailbox(text), { name, address, domain: 'b.invalid' }));
}

for (const [what, text] of noMailboxes) {
  test(`invalid sender: ${what}`, (t) => t.is(parseMailbox(text), null));
}

test('runs of spaces in a display name become one space, as header folding requires', (t) => {
  t.is(parseMailbox(`A${of(' ', 100)}pp <a@b.invalid>`)?.name, 'A pp');
});
