/** The port of returned mail takes mail for its own addresses alone, whatever is said to it. */
import test from 'ava';
import { connectSmtp } from '#lab/mx/smtp-client.ts';
import { startReturns } from '#lab/scenes/returns.ts';
import { table } from '#lab/table.ts';

test('no form of address makes the inbound port relay', async (t) => {
  const world = await startReturns(t, { settings: { POSTERN_RETURN_PATH_DOMAIN: 'ours.invalid' } });
  const { path } = await world.delivered();
  const { smtpHost: host, inboundPort: port } = world.config;
  for (const [name, to, from = '<stranger@elsewhere.invalid>'] of table<
    [name: string, to: string, from?: string]
  >('smtp-in/relay-tricks')) {
    const talk = await connectSmtp(port!, { host: host! });
    await talk.says('EHLO x\r\n', '250');
    await talk.says(`MAIL FROM:${from}\r\n`, '');
    t.regex(await talk.says(`RCPT TO:${to}\r\n`, '5'), /^5\d\d 5\./, name);
    await talk.says('DATA\r\n', '503 5.5.1');
    talk.close();
  }
  const talk = await connectSmtp(port!, { host: host! });
  await talk.says('EHLO x\r\n', '250');
  await talk.says('MAIL FROM:<>\r\n', '250');
  await talk.says(`RCPT TO:<${path}>\r\n`, '250');
  talk.close();
  t.is(world.mx[0]!.messages.length, 1, 'our own mail, and nothing that a stranger handed in');
});
