/** The MTA-STS grammar of mailauth is still what src/platform/vendor/mailauth-mta-sts.ts expects. */
import test from 'ava';
import { checkPart, checkVersion } from '#lab/vendor.ts';

const file = 'src/platform/vendor/mailauth-mta-sts.ts';
const load = () => import('#platform/vendor/mailauth-mta-sts.ts');

test('mailauth (MTA-STS) is pinned to the version that was read', (t) => checkVersion(t, 'mailauth', file));

test('resolvePolicy reads the id of a record, and says false if there is none', async (t) => {
  await checkPart(t, 'resolvePolicy of mailauth/lib/mta-sts', file, async () => {
    const { resolvePolicy } = await load();
    const idOf = (text: string) =>
      resolvePolicy('example.invalid', { resolver: async () => [[text]], strict: true });
    return (await idOf('v=STSv1; id=20260101;')) === '20260101' && (await idOf('v=spf1 -all')) === false;
  });
});

test('parsePolicy reads mode, hosts and age, and throws at anything else', async (t) => {
  await checkPart(t, 'parsePolicy of mailauth/lib/mta-sts', file, async () => {
    const { parsePolicy } = await load();
    const { mode, mx, maxAge } = parsePolicy('version: STSv1\nmode: enforce\nmx: *.invalid\nmax_age: 60\n', {
      strict: true,
    });
    t.throws(() => parsePolicy('version: STSv1\n', { strict: true }));
    return mode === 'enforce' && String(mx) === '*.invalid' && maxAge === 60;
  });
});

test('validateMx lets a wildcard stand for exactly one label', async (t) => {
  await checkPart(t, 'validateMx of mailauth/lib/mta-sts', file, async () => {
    const { validateMx } = await load();
    const isValid = (host: string) => validateMx(host, { mode: 'enforce', mx: ['*.invalid'] }).valid;
    return isValid('mx.invalid') && !isValid('a.mx.invalid') && !isValid('invalid');
  });
});
