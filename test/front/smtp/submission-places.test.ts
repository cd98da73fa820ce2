/** After AUTH, a connection and the memory of its messages are the organization's, from however many networks it logs in. */
import test from 'ava';
import { startListener } from '#lab/mx/listener.ts';
import { connectSmtp, plain } from '#lab/mx/smtp-client.ts';
import { startSubmission, submit, type Tenant, tenantOf } from '#lab/scenes/submission.ts';
import { until } from '#lab/until.ts';

const connections = 8;

test('a login takes a place of its organization instead of its network’s, and leaves places for others', async (t) => {
  const world = await startSubmission(t, {
    settings: { POSTERN_SMTP_CONNECTIONS: String(connections), POSTERN_SMTP_PER_CLIENT: '1' },
  });
  const [idle, other] = [await tenantOf(world), await tenantOf(world)];

  async function logIn({ key }: Tenant, from: string) {
    const talk = await connectSmtp(world.ports.implicit, { tls: true, from });
    await talk.says('EHLO client.invalid\r\n', '250');
    const reply = await talk.says(`AUTH PLAIN ${plain(key)}\r\n`, '');
    return { talk, reply };
  }

  const held = [];
  for (let n = 0; n < connections; n++) {
    // A connection that is refused keeps the place of its network until it is closed.
    const { talk, reply } = await logIn(idle, n < connections / 2 ? '127.0.0.10' : `127.0.0.${20 + n}`);
    if (reply.startsWith('235')) held.push(talk);
    else {
      t.regex(reply, /^421 4\.7\.0 Too many connections of your organization\. Close some, or retry later\./);
      await talk.over();
    }
  }
  t.is(held.length, connections / 2);

  const { talk, reply } = await logIn(other, '127.0.0.10');
  t.regex(reply, /^235/);
  await submit(talk, ['ann@there.invalid'], ['From: app@sender.invalid', 'Subject: Hi', '', 'Hi']);

  held[0]!.close();
  await until(async () => (await logIn(idle, '127.0.0.11')).reply.startsWith('235'), {
    what: 'the place of the closed connection',
  });
});

test('memory for a message is the organization’s after AUTH, and the client’s network’s without', async (t) => {
  const owners: string[] = [];
  const { port } = await startListener(t, {
    allowClearLogin: true,
    handler: { authenticate: async (_, password) => password, organizationOf: (user) => `org ${user}` },
    memoryBudget: {
      open(owner) {
        owners.push(owner);
        return { add: () => true, release() {} };
      },
    },
  });
  for (const [user, from] of Object.entries({ a: '127.0.0.10', b: '127.0.0.11' })) {
    const talk = await connectSmtp(port, { from });
    await talk.says('EHLO x\r\n', '250');
    await talk.says(`AUTH PLAIN ${plain(user)}\r\n`, '235');
    await talk.begins('<>', '<ann@ours.invalid>');
    await talk.says('Hi\r\n.\r\n', '250');
  }
  t.deepEqual(owners, ['org a', 'org b']);
});
