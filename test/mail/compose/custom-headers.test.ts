import test from 'ava';
import PostalMime, { decodeWords } from 'postal-mime';
import { toFields } from '#lab/compose-cases.ts';
import { costsAtMost } from '#lab/cost.ts';
import { column, table } from '#lab/table.ts';
import { headerIssue } from '#mail/compose/custom-headers.ts';
import { composeMime, toBytes } from '#mail/compose/mime.ts';

test('headers that would break or falsify the message are refused, and invalid values of those that replace ours', (t) => {
  const faulty: Record<string, string[]> = Object.fromEntries(table('compose/faulty-headers'));
  for (const [value, names] of Object.entries(faulty)) {
    for (const name of names) t.truthy(headerIssue(name, value), `${name}: ${value}`);
  }
  const fine = ['X-A', 'x_a', 'In-Reply-To', 'Reply-To', 'Sender', 'Message-ID', 'Toto', 'Auto-Submitted'];
  for (const name of fine) t.is(headerIssue(name, 'a@b.invalid'), null, name);
});

/** Name, value, and the value in the message; null if the value is refused. */
const structured: [name: string, given: string, written: string | null][] = table(
  'compose/structured-headers',
);

test('structured headers are never encoded: they follow their grammar or are refused with what would be right', async (t) => {
  for (const [name, given, written] of structured) {
    const fault = headerIssue(name, given);
    t.is(fault === null, written !== null, `${name}: ${given.slice(0, 80)}`);
    if (fault) t.is(fault.message, `the value of ${name} must be ${fault.expected}`);
    const message = toBytes(composeMime(toFields({ text: 'x', headers: { [name]: given } })).message);
    const { headers } = await PostalMime.parse(message);
    const value = headers.find(({ key }) => key === name.toLowerCase())?.value ?? null;
    t.is(value, written, `${name}: ${given.slice(0, 80)}`);
  }
});

test('the grammars are checked in linear time', async (t) => {
  const parts = column('compose/header-parts');
  const names = ['List-Unsubscribe', 'List-Post', 'List-Id', 'References', 'Errors-To', 'List-X', 'Reply-To'];
  await costsAtMost(t, 5_000, () => {
    for (const name of names) for (const part of parts) headerIssue(name, part.repeat(16_384 / part.length));
  });
});

test('text that looks like an encoded word reaches the reader as it was given', async (t) => {
  const text = 'see =?utf-8?Q?Bcc?= and =?x';
  const fields = toFields({ text: 'x', subject: text, headers: { 'X-A': text } });
  const from = { name: text, address: 'a@b.invalid', domain: 'b.invalid' };
  const attachments = [{ filename: `${text}.txt`, content: Buffer.from('x') }];
  const message = toBytes(composeMime({ ...fields, from, attachments }).message);
  const read = await PostalMime.parse(message);
  t.is(read.subject, text);
  t.is(read.from?.name, text);
  t.is(decodeWords(read.headers.find(({ key }) => key === 'x-a')!.value), text);
  // Some readers, this one too, decode the encoded words in a name that RFC 2231 carries.
  t.true(message.includes("filename*0*=utf-8''see%20%3D%3Futf-8%3FQ%3FBcc%3F%3D"));
  t.notRegex(message.toString(), /=\?utf-8\?Q\?Bcc/);
});
