/** The reading of a DKIM key record by mailauth is still what src/platform/vendor/mailauth-dkim-key.ts expects. */
import test from 'ava';
import { dkimKey } from '#lab/dkim.ts';
import { checkPart, checkVersion } from '#lab/vendor.ts';
import { readDkimKey } from '#platform/vendor/mailauth-dkim-key.ts';

const file = 'src/platform/vendor/mailauth-dkim-key.ts';

test('mailauth (DKIM keys) is pinned to the version that was read', (t) => checkVersion(t, 'mailauth', file));

test('getPublicKey gives the key and the flags, and throws at a record that verifiers ignore', async (t) => {
  await checkPart(t, 'getPublicKey of mailauth/lib/tools', file, async () => {
    const { publicKey, testing } = await readDkimKey(`v=DKIM1; t=y; p=${dkimKey.publicKey}`);
    await t.throwsAsync(readDkimKey(`p=${dkimKey.publicKey}; v=DKIM1`));
    await t.throwsAsync(readDkimKey(`h=sha1; p=${dkimKey.publicKey}`));
    return publicKey.startsWith('-----BEGIN ') && testing;
  });
});
