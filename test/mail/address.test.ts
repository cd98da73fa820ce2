import test from 'ava';
import { compareKey, domainOf, envelopeAddress, parseMailbox, toDomain } from '../../src/mail/address.ts';

const of = (character: string, count: number) => character.repeat(count);
/** A domain of exactly `length` characters, in labels that are not too long. */
const domain = (length: number) => `${of(`${of('d', 49)}.`, 5).slice(7 - length)}invalid`;

const valid: [address: string, domain: string][] = [
  ['ann@there.invalid', 'there.invalid'],
  ['Ann.Lee@There.INVALID', 'there.invalid'],
  ['a@b.c', 'b.c'],
  ["o'neil+tag=1#!$%&*/?^_`{|}~-@there.invalid", 'there.invalid'],
  ['1@1.example', '1.example'],
  ['ann@sub.sub.there.invalid', 'sub.sub.there.invalid'],
  ['ann@a-b--c.invalid', 'a-b--c.invalid'],
  ['percent%there.invalid@relay.invalid', 'relay.invalid'],
  // Quoted local parts.
  ['"ann"@there.invalid', 'there.invalid'],
  ['"ann lee"@there.invalid', 'there.invalid'],
  ['"a@b"@there.invalid', 'there.invalid'],
  ['".a..b."@there.invalid', 'there.invalid'],
  ['"a\\"b\\\\c"@there.invalid', 'there.invalid'],
  ['"a,b;c:d"@there.invalid', 'there.invalid'],
  // UTF-8 of RFC 6531, and internationalized domains.
  ['jörg@there.invalid', 'there.invalid'],
  ['用户@例子.测试', 'xn--fsqu00a.xn--0zwm56d'],
  ['"jörg müller"@there.invalid', 'there.invalid'],
  ['😀@there.invalid', 'there.invalid'],
  ['ann@bücher.invalid', 'xn--bcher-kva.invalid'],
  ['ann@BÜCHER.invalid', 'xn--bcher-kva.invalid'],
  ['ann@xn--bcher-kva.invalid', 'xn--bcher-kva.invalid'],
  ['ann@straße.invalid', 'xn--strae-oqa.invalid'],
  // Lengths, in octets.
  [`${of('a', 64)}@there.invalid`, 'there.invalid'],
  [`${of('ö', 32)}@there.invalid`, 'there.invalid'],
  [`ann@${of('d', 63)}.invalid`, `${of('d', 63)}.invalid`],
  [`${of('a', 53)}@${domain(200)}`, domain(200)],
];

const invalid: [what: string, address: string][] = [
  ['nothing', ''],
  ['no @', 'ann'],
  ['no local part', '@there.invalid'],
  ['no domain', 'ann@'],
  ['only an @', '@'],
  ['two @', 'a@b@there.invalid'],
  ['a display name', 'Ann <ann@there.invalid>'],
  ['angle brackets', '<ann@there.invalid>'],
  ['a list', 'ann@there.invalid,bob@there.invalid'],
  ['a list with spaces', 'ann@there.invalid, bob@there.invalid'],
  ['a comment', 'ann(lee)@there.invalid'],
  ['a route', '@relay.invalid:ann@there.invalid'],
  ['a URL', 'mailto:ann@there.invalid'],
  // Dots and spaces.
  ['a leading dot', '.ann@there.invalid'],
  ['a trailing dot', 'ann.@there.invalid'],
  ['two dots', 'a..b@there.invalid'],
  ['a space around', ' ann@there.invalid'],
  ['a space at the end', 'ann@there.invalid '],
  ['a space in the local part', 'ann lee@there.invalid'],
  ['a space in the domain', 'ann@there .invalid'],
  ['a no-break space', 'ann\u00a0lee@there.invalid'],
  ['a line separator', 'ann\u2028lee@there.invalid'],
  // Control characters.
  ['CR LF at the end', 'ann@there.invalid\r\n'],
  ['LF at the end', 'ann@there.invalid\n'],
  ['a header after CR LF', 'ann@there.invalid\r\nBcc: eve@evil.invalid'],
  ['CR in the local part', 'an\rn@there.invalid'],
  ['LF in a quoted local part', '"an\nn"@there.invalid'],
  ['an escaped LF', '"an\\\nn"@there.invalid'],
  ['NUL', 'an\0n@there.invalid'],
  ['NUL in the domain', 'ann@there\0.invalid'],
  ['TAB', 'an\tn@there.invalid'],
  ['DEL', 'an\x7fn@there.invalid'],
  ['a C1 control', 'an\u0085n@there.invalid'],
  ['a lone high surrogate', 'an\ud800n@there.invalid'],
  ['a lone low surrogate', '\udc00@there.invalid'],
  // Quotes.
  ['an open quote', '"ann@there.invalid'],
  ['a quote inside', 'an"n@there.invalid'],
  ['two quoted strings', '"a"."b"@there.invalid'],
  ['a backslash that escapes the end', '"ann\\"@there.invalid'],
  ['a backslash outside quotes', 'a\\nn@there.invalid'],
  ['an angle bracket in quotes', '"a>b"@there.invalid'],
  ['an escaped angle bracket in quotes', '"a\\<b"@there.invalid'],
  // Domains.
  ['a single label', 'ann@localhost'],
  ['a trailing dot of the domain', 'ann@there.invalid.'],
  ['an empty label', 'ann@there..invalid'],
  ['a leading dot of the domain', 'ann@.there.invalid'],
  ['an address literal', 'ann@[192.0.2.1]'],
  ['an IPv6 literal', 'ann@[IPv6:2001:db8::1]'],
  ['an IPv4 address', 'ann@192.0.2.1'],
  ['an IPv4 address in hex', 'ann@0xc0.0x00.0x02.0x01'],
  ['an underscore', 'ann@the_re.invalid'],
  ['a leading hyphen', 'ann@-there.invalid'],
  ['a trailing hyphen', 'ann@there-.invalid'],
  ['percent-encoding', 'ann@th%65re.invalid'],
  ['a path', 'ann@there.invalid/x'],
  ['a query', 'ann@there.invalid?x'],
  ['a fragment', 'ann@there.invalid#x'],
  ['a port', 'ann@there.invalid:25'],
  ['broken punycode', 'ann@xn--iñvalid.invalid'],
  // Lengths.
  ['a local part of 65', `${of('a', 65)}@there.invalid`],
  ['a local part of 65 octets', `${of('ö', 32)}a@there.invalid`],
  ['a label of 64', `ann@${of('d', 64)}.invalid`],
  ['255 in all', `${of('a', 54)}@${domain(200)}`],
  ['255 in all, in the envelope', `${of('a', 60)}@${of('ö.', 20)}${domain(40)}`],
];

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

const same: [string, string][] = [
  ['Ann@There.Invalid', 'ann@there.invalid'],
  ['ANN@BÜCHER.invalid', 'ann@xn--bcher-kva.invalid'],
  ['ann@bu\u0308cher.invalid', 'ann@bücher.invalid'],
  ['jo\u0308rg@there.invalid', 'jörg@there.invalid'],
  ['JÖRG@there.invalid', 'jörg@there.invalid'],
  ['JO\u0308RG@there.invalid', 'jörg@there.invalid'],
  ['"ann"@there.invalid', 'ann@there.invalid'],
  ['"a\\nn.lee"@there.invalid', 'Ann.Lee@there.invalid'],
  ['"ann\\ lee"@there.invalid', '"Ann Lee"@there.invalid'],
];

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

const mailboxes: [text: string, name: string, address: string][] = [
  ['a@b.invalid', '', 'a@b.invalid'],
  ['<a@b.invalid>', '', 'a@b.invalid'],
  ['  App  <a@b.invalid> ', 'App', 'a@b.invalid'],
  ['App<a@b.invalid>', 'App', 'a@b.invalid'],
  ['"App" <a@b.invalid>', 'App', 'a@b.invalid'],
  ['"Lee, Ann" <a@b.invalid>', 'Lee, Ann', 'a@b.invalid'],
  ['"Ann \\"A\\" \\\\ Lee" <a@b.invalid>', 'Ann "A" \\ Lee', 'a@b.invalid'],
  ['"ann@evil.invalid" <a@b.invalid>', 'ann@evil.invalid', 'a@b.invalid'],
  ["Ann O'Neil (Sales) <a@b.invalid>", "Ann O'Neil (Sales)", 'a@b.invalid'],
  ['Jörg Müller 😀 <a@b.invalid>', 'Jörg Müller 😀', 'a@b.invalid'],
  ['App <"a b"@b.invalid>', 'App', '"a b"@b.invalid'],
  ['Team @ Acme <a@b.invalid>', 'Team @ Acme', 'a@b.invalid'],
  ['"Acme <Support>" <a@b.invalid>', 'Acme <Support>', 'a@b.invalid'],
  ['"a <x@y.invalid>, \\"" <a@b.invalid>', 'a <x@y.invalid>, "', 'a@b.invalid'],
];

const noMailboxes: [what: string, text: string][] = [
  ['nothing', ''],
  ['a name alone', 'App'],
  ['empty brackets', 'App <>'],
  ['two addresses', 'a@b.invalid, c@d.invalid'],
  ['two named addresses', 'A <a@b.invalid>, C <c@d.invalid>'],
  ['an address in quotes, then another name', '"A <a@b.invalid>" C <c@d.invalid>'],
  ['brackets in a name without quotes', 'A <B> <c@d.invalid>'],
  ['an address as the name', 'a@b.invalid <c@d.invalid>'],
  ['an address before the named one', 'a@b.invalid, C <c@d.invalid>'],
  ['text after the address', 'App <a@b.invalid> x'],
  ['brackets in brackets', 'App <<a@b.invalid>>'],
  ['two addresses in brackets', '<a@b.invalid><c@d.invalid>'],
  ['spaces in brackets', 'App < a@b.invalid >'],
  ['an open quote', '"App <a@b.invalid>'],
  ['a quote after the quote', '"App" "x" <a@b.invalid>'],
  ['a quote inside the quotes', '"A"p" <a@b.invalid>'],
  ['CR LF in the name', 'App\r\nBcc: eve@evil.invalid\r\nX: <a@b.invalid>'],
  ['CR LF in quotes', '"App\r\nX: y" <a@b.invalid>'],
  ['an escaped LF in quotes', '"App\\\n" <a@b.invalid>'],
  ['CR LF after the name', 'App\r\n <a@b.invalid>'],
  ['CR LF at the end', 'App <a@b.invalid>\r\n'],
  ['LF before an address', '\na@b.invalid'],
  ['CR LF in the address', 'App <a@b.invalid\r\nRCPT TO:<c@d.invalid>'],
  ['NUL in the name', 'A\0pp <a@b.invalid>'],
  ['a lone surrogate in the name', 'A\ud800 <a@b.invalid>'],
  ['a name longer than a header line', `${of('n', 999)} <a@b.invalid>`],
];

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
