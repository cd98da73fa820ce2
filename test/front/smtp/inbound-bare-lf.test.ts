/**
 * Hosts and scripts that return mail with bare LFs, or with addresses of their own spelling (haraka/Haraka#3199,
 * OpenSMTPD/OpenSMTPD#1204, docomo's addresses with two dots): the bounce is worth more than its form.
 */
import test from 'ava';
import { connectSmtp } from '#lab/mx/smtp-client.ts';
import { goldenMail, startReturns } from '#lab/scenes/returns.ts';

const lineEnds = { 'bare LFs': '\n', 'CR CR LF': '\r\r\n', 'bare CRs': '\r' };

for (const [name, lineEnd] of Object.entries(lineEnds)) {
  test(`a bounce with ${name} counts`, async (t) => {
    const world = await startReturns(t);
    const { emailId, path } = await world.delivered();
    const talk = await connectSmtp(world.config.inboundPort!, { host: world.config.smtpHost! });
    await talk.says('EHLO host.invalid\r\n', '250');
    await talk.says('MAIL FROM: <>\r\n', '250');
    await talk.says(`RCPT TO: ${path}\r\n`, '250');
    await talk.says('DATA\r\n', '354');
    const raw = goldenMail('gmail-report', path).toString('latin1');
    await talk.says(`${raw.replace(/\r?\n/g, lineEnd)}\r\n.\r\n`, '250');
    await world.when(emailId, ({ status }) => status === 'bounced');
    t.pass();
  });
}

const senders = [
  '<a..b.@docomo.invalid>',
  '<"a b"@there.invalid>',
  'root',
  '<MAILER-DAEMON>',
  '<MAILER-DAEMON@[192.0.2.1]>',
];

test('a bounce from a sender that no address can be counts', async (t) => {
  const world = await startReturns(t);
  for (const [index, sender] of senders.entries()) {
    const to = `ann${index}@there.invalid`;
    const { emailId, path } = await world.delivered(to);
    const talk = await connectSmtp(world.config.inboundPort!, { host: world.config.smtpHost! });
    await talk.says('EHLO host.invalid\r\n', '250');
    await talk.begins(sender, `<${path}>`);
    await talk.says(`${goldenMail('gmail-report', path, to).toString('latin1')}\r\n.\r\n`, '250');
    await world.when(emailId, ({ status }) => status === 'bounced');
  }
  t.pass();
});
