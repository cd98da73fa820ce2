import { createHmac, randomBytes } from 'node:crypto';
import test from 'ava';
import { hmacSha256 } from '#platform/base/hmac.ts';

test('it is the HMAC that Node makes, for keys and texts of any length', (t) => {
  for (const keyLength of [0, 1, 32, 63, 64]) {
    const key = randomBytes(keyLength);
    const hmac = hmacSha256(key);
    for (const length of [0, 1, 16, 63, 64, 65, 1000]) {
      const text = randomBytes(length);
      t.deepEqual(hmac(text), createHmac('sha256', key).update(text).digest(), `${keyLength}, ${length}`);
    }
  }
  t.throws(() => hmacSha256(randomBytes(65)), { message: /longer than a block/ });
});
