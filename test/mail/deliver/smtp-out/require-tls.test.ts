/** What a mail itself says on TLS (RFC 8689): REQUIRETLS, and the header TLS-Required: No. */
import test from 'ava';
import { mailTls } from '#accounts/domains.ts';
import { authorizedPem, policy, startPolicyHost, trustAuthority } from '#lab/mx/policy-host.ts';
import { connectSmtp, plain } from '#lab/mx/smtp-client.ts';
import { emailIdOf, startSubmission } from '#lab/scenes/submission.ts';
import { headerIssue } from '#mail/compose/custom-headers.ts';

trustAuthority();

const offering = ['PIPELINING', 'SIZE 26214400', 'REQUIRETLS'];

/** Four domains, each with a host of its own. All but plain.invalid have an MTA-STS policy. */
async function startScene(t: Parameters<typeof startSubmission>[0]) {
  const policies = await startPolicyHost({
    'right.invalid': policy('enforce', ['mx1.invalid']),
    'wrong.invalid': policy('enforce', ['mx2.invalid']),
    'other.invalid': policy('enforce', ['mx9.invalid']),
  });
  t.teardown(policies.close);
  const world = await startSubmission(t, {
    exchangers: [
      { pem: authorizedPem, extensions: offering },
      { pem: authorizedPem },
      { pem: authorizedPem, extensions: offering },
    ],
    overrides: { policyPort: policies.port, policyTimeoutMs: 300_000 },
  });
  const zone: Parameters<typeof world.dns.set>[0] = {};
  const hosts = { right: 1, wrong: 2, plain: 3, other: 3 };
  for (const [name, at] of Object.entries(hosts)) {
    zone[`${name}.invalid`] = { MX: [`10 mx${at}.invalid`] };
    if (name === 'plain') continue;
    zone[`_mta-sts.${name}.invalid`] = { TXT: ['v=STSv1; id=1;'] };
    zone[`mta-sts.${name}.invalid`] = { A: [policies.host] };
  }
  world.dns.set(zone);
  const first = async (emailId: string) => {
    const email = await world.when(emailId, ({ status }) => !['queued', 'sending'].includes(status));
    return { ...email.recipients[0], data: email.events.at(-1).data };
  };
  return { world, first };
}

test('REQUIRETLS: only hosts that are proven and pass it on; TLS-Required: No: policies are ignored', async (t) => {
  const { world, first } = await startScene(t);
  const talk = await connectSmtp(world.ports.starttls);
  t.notRegex(await talk.says('EHLO app.invalid\r\n', '250'), /REQUIRETLS/);
  await talk.says('STARTTLS\r\n', '220');
  await talk.secure();
  t.regex(await talk.says('EHLO app.invalid\r\n', '250'), /REQUIRETLS/);
  await talk.says(`AUTH PLAIN ${plain(world.key)}\r\n`, '235');
  const submit = async (to: string, mail = ' REQUIRETLS', header = '') => {
    await talk.begins(`<app@sender.invalid>${mail}`, `<${to}>`);
    const text = `From: app@sender.invalid\r\nTo: ${to}\r\nSubject: ${to}${mail}\r\n${header}\r\nHello\r\n.\r\n`;
    return first(emailIdOf(await talk.says(text, '250')));
  };

  const right = await submit('ann@right.invalid');
  t.like(right, { status: 'delivered', tls: { policy: 'mta-sts', verified: true } });
  t.is(world.mx[0]!.messages[0]!.params.REQUIRETLS, true);

  const without = await submit('ann@wrong.invalid');
  t.like(without, { status: 'bounced', bounce: { type: 'soft', category: 'tls' } });
  t.regex(without.bounce!.diagnostic, /REQUIRETLS.*does not offer/);

  const unproven = await submit('ann@plain.invalid');
  t.is(unproven.status, 'deferred');
  t.regex(String(unproven.data.diagnostic), /neither DNSSEC nor an MTA-STS policy proves that mx3\.invalid/);
  const bothSaid = await submit('bob@plain.invalid', ' REQUIRETLS', 'TLS-Required: No\r\n');
  t.is(bothSaid.status, 'deferred', 'REQUIRETLS overrides the header');

  t.is((await submit('ann@other.invalid', '')).status, 'deferred');
  const ignoring = await submit('bob@other.invalid', '', 'TLS-Required: No\r\n');
  t.like(ignoring, { status: 'delivered', tls: { policy: 'opportunistic' } });
  t.regex(world.mx[2]!.messages[0]!.raw.toString(), /^TLS-Required: No\r$/m);
  t.is(world.mx[2]!.messages.length, 1);
  talk.close();

  const { body } = await world.send({ to: 'eve@other.invalid', headers: { 'tls-required': 'no' } });
  t.is((await first(body.emailId)).status, 'delivered');
});

test('a mail cannot lower what its domain demands; the header has one value', (t) => {
  t.is(mailTls('encrypted', false), 'encrypted');
  t.is(mailTls('opportunistic', false), 'not-required');
  t.is(mailTls('verified', undefined), 'verified');
  t.is(mailTls('verified', true), 'requiretls');
  t.is(headerIssue('TLS-Required', 'No'), null);
  t.is(headerIssue('TLS-Required', 'Yes')?.expected, 'No');
});
