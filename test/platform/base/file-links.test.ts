import test from 'ava';
import { createFileLinks } from '#platform/base/file-links.ts';
import { fixedSecrets } from '#platform/base/secrets.ts';

const file = { orgId: 'o1', mailId: 'e1', id: '0' };
const now = 1_800_000_000_000;
const linksOf = (...secrets: [string, ...string[]]) =>
  createFileLinks(fixedSecrets(...secrets), () => 'https://mail.example.com');

test('a link reads the file that it was made for, for an hour, and survives a new secret', (t) => {
  const { url, expiresAt } = linksOf('first').sign(file, '/e1/0', now);
  t.is(expiresAt, now + 3_600_000);
  const { origin, pathname, searchParams } = new URL(url);
  t.is(`${origin}${pathname}`, 'https://mail.example.com/e1/0');
  const query = Object.fromEntries(searchParams);
  const links = linksOf('second', 'first');
  t.is(links.read(file, query, expiresAt - 1), 'o1');
  t.is(links.read(file, query, expiresAt), null);
  t.is(links.read(file, query, now - 1000), 'o1', 'the clocks of two nodes differ');
  t.is(links.read(file, query, now - 7_200_000), null, 'the clock was ahead when it was made');
  t.is(linksOf('second').read(file, query, now), null);
  for (const other of [{ id: '1' }, { mailId: 'e2' }])
    t.is(links.read({ ...file, ...other }, query, now), null);
  for (const changed of [
    { org: 'o2' },
    { expires: String(expiresAt + 1) },
    { expires: 'Infinity' },
    { signature: '' },
    { signature: query.signature!.slice(1) },
    { signature: [query.signature, query.signature] },
    { org: undefined },
  ])
    t.is(links.read(file, { ...query, ...changed }, now), null, JSON.stringify(changed));
});
