/**
 * It relays nothing: not for who has not logged in, on the port of applications; and a listener that takes mail for
 * its own addresses alone gives its handler the address that the mail is for, in no other form that could pass for
 * one of its own.
 */
import test from 'ava';
import { startListener } from '#lab/mx/listener.ts';
import { connectSmtp } from '#lab/mx/smtp-client.ts';
import { submissionWorlds } from '#lab/scenes/submission.ts';
import { table } from '#lab/table.ts';
import { SmtpRefusal } from '#platform/values/mail-handler.ts';

const worlds = submissionWorlds(['sqlite']);

for (const [name, to, from = '<stranger@elsewhere.invalid>'] of table<
  [name: string, to: string, from?: string]
>('smtp-in/relay-tricks')) {
  test(`relaying is refused: ${name}`, async (t) => {
    const submission = await connectSmtp(worlds.sqlite.ports.implicit, { tls: true });
    await submission.says('EHLO x\r\n', '250');
    await submission.says(`MAIL FROM:${from}\r\n`, '530 5.7.0');
    await submission.says(`RCPT TO:${to}\r\n`, '530 5.7.0');
    await submission.says('DATA\r\n', '530 5.7.0');
    submission.close();

    const asked: string[] = [];
    const listener = await startListener(t, {
      handler: {
        async onRcpt(address) {
          asked.push(address);
          if (address !== 'postmaster@ours.invalid')
            throw new SmtpRefusal(550, '5.7.1', 'This server relays nothing');
        },
      },
    });
    const talk = await connectSmtp(listener.port);
    await talk.says('EHLO x\r\n', '250');
    await talk.says(`MAIL FROM:${from}\r\n`, '');
    const reply = await talk.says(`RCPT TO:${to}\r\n`, '5');
    t.regex(reply, /^(550 5\.7\.1|501 5\.1\.3|503 5\.5\.1|555 5\.5\.4) /);
    t.false(asked.includes('postmaster@ours.invalid'));
    await talk.says('DATA\r\n', '503 5.5.1');
    t.deepEqual(listener.taken, []);
    talk.close();
  });
}

test.after.always(async () => {
  const sent = await worlds.sqlite.db('emails').select('id');
  if (sent.length > 0 || worlds.sqlite.mx[0]!.sessions.length > 0) throw new Error('something was relayed');
});
