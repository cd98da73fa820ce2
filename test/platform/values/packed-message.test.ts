/** Messages as they are stored: what every version has stored can be read, exactly. */
import { hash, randomBytes } from 'node:crypto';
import test from 'ava';
import { maxPreloadedBytes } from '#platform/values/glossary.ts';
import { packMessage, unpackMessage } from '#platform/values/packed-message.ts';

const mail = Buffer.from(
  `DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=sender.invalid;\r\nSubject: Grüße\r\n\r\n${'Some line of text.\r\n'.repeat(100)}`,
);

test('a message is smaller packed, and the same bytes afterwards', (t) => {
  const packed = packMessage(mail);
  t.true(packed.length < mail.length / 10);
  t.deepEqual(unpackMessage(packed), mail);
});

test('what gets no smaller, is large, or is from an older version is stored as it is', (t) => {
  const random = Buffer.concat([Buffer.from('Subject: '), randomBytes(1000)]);
  const large = Buffer.alloc(maxPreloadedBytes + 1, 'a');
  for (const raw of [random, large]) t.is(packMessage(raw), raw);
  for (const raw of [random, large, mail, Buffer.alloc(0)]) t.is(unpackMessage(raw), raw);
  const largest = large.subarray(1);
  t.deepEqual(unpackMessage(packMessage(largest)), largest);
});

test('the dictionary is that of the messages in databases', (t) => {
  // Packed by the first version. If this fails, the dictionary was changed: give the new one another number, and keep this one.
  const stored = Buffer.from(goldenPacked, 'base64');
  t.is(hash('sha256', unpackMessage(stored)), hash('sha256', mail));
  t.throws(() => unpackMessage(Buffer.of(2, 1, 2, 3)), { message: /unknown dictionary 2/ });
});

const goldenPacked =
  'ASi1L/1gLQfdAQB0AnNlbmRlci5pbnZhbGlkO0dyw7zDn2UNCg0KU29tZSBsaW5lIG9mLgUAu9988faikVtGURPjSqyFFQ==';
