/** The SPF and DMARC evaluation of mailauth is still what src/platform/vendor/mailauth-spf-dmarc.ts expects. */
import test from 'ava';
import { checkPart, checkVersion } from '#lab/vendor.ts';
import { evaluateDmarc, evaluateSpf } from '#platform/vendor/mailauth-spf-dmarc.ts';

const file = 'src/platform/vendor/mailauth-spf-dmarc.ts';

/** A DNS with this one TXT record. */
const withRecord = (name: string, text: string) => async (asked: string, type?: string) => {
  if (type === 'TXT' && asked === name) return [[text]];
  throw Object.assign(new Error('no record'), { code: 'ENODATA' });
};

test('mailauth (SPF, DMARC) is pinned to the version that was read', (t) =>
  checkVersion(t, 'mailauth', file));

test('spf gives the result for one address and one sender', async (t) => {
  await checkPart(t, 'spf of mailauth/lib/spf', file, async () => {
    const resultFor = async (ip: string) => {
      const { result } = await evaluateSpf({
        sender: 'postmaster@sender.invalid',
        ip,
        helo: 'mail.sender.invalid',
        resolver: withRecord('sender.invalid', 'v=spf1 ip4:192.0.2.1 -all'),
        maxElapsedTime: 5_000,
      });
      return result;
    };
    return (await resultFor('192.0.2.1')) === 'pass' && (await resultFor('192.0.2.2')) === 'fail';
  });
});

test('dmarc gives the record, and which of SPF and DKIM align', async (t) => {
  await checkPart(t, 'dmarc of mailauth/lib/dmarc', file, async () => {
    const evaluation = await evaluateDmarc({
      headerFrom: ['sender.invalid'],
      spfDomains: ['other.invalid'],
      dkimDomains: [{ id: 'ours', domain: 'sender.invalid' }],
      resolver: withRecord('_dmarc.sender.invalid', 'v=DMARC1; p=reject'),
      strict: true,
    });
    if (evaluation === false) return false;
    const { status, rr, policyDomain, alignment } = evaluation;
    const isFound = rr === 'v=DMARC1; p=reject' && policyDomain === 'sender.invalid';
    return status.result === 'pass' && isFound && !!alignment.dkim?.result && !alignment.spf?.result;
  });
});
