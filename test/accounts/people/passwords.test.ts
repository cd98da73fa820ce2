/** Passwords are checked one after the other: strangers wait for strangers, and not those who belong here for them. */
import test from 'ava';
import { createPasswords } from '#accounts/people/passwords.ts';

test('strangers from any number of networks keep no known person from signing in', async (t) => {
  const passwords = createPasswords({ N: 2, r: 1, p: 1 });
  const password = 'correct horse battery';
  const hash = await passwords.hash(password, 'ann');
  const ask = (owner: string, isKnown = false) => passwords.verify(password, hash, { isKnown, owner });
  const one = Array.from({ length: 4 }, () => ask('192.0.2.1'));
  await t.throwsAsync(ask('192.0.2.1'), { message: /Too many people/ });
  const others = Array.from({ length: 6 }, (_, n) => ask(`198.51.100.${n}`));
  await t.throwsAsync(ask('203.0.113.1'), { message: /Too many people/ });
  t.true(await ask('ann', true));
  t.regex(await passwords.hash(password, 'ann'), /^scrypt\$/);
  t.true((await Promise.all([...one, ...others])).every(Boolean));
  t.true(await ask('203.0.113.1'), 'who has left the line makes room');
});
