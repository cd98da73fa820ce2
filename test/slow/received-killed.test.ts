/**
 * SIGKILL at every step of the reception of mail for applications. Promised: what was answered 250 is kept once, with its event;
 * what was not answered is kept or not, and a mail that its sender sends again is a second one at most.
 */
import test from 'ava';
import { setDomainReceives } from '#accounts/rows/receiving-domains.ts';
import { createCrashScene } from '#lab/crash-scene.ts';
import { kinds } from '#lab/database/databases.ts';
import { freePort } from '#lab/load/ports.ts';
import { connectSmtp } from '#lab/mx/smtp-client.ts';
import { type PosternProcess, startProcess } from '#lab/scenes/process.ts';
import { addRoute } from '#mail/received/define-route.ts';
import type { FailpointName } from '#platform/base/failpoints.ts';

const senders = 4;
const nth = 6;

const killAt = (step: string) => [
  '--import',
  `${new URL('../lab/kill-at.ts', import.meta.url)}?step=${step}&nth=${nth}&from=start`,
];

/** Null: when the client has read a 250. */
const steps: (FailpointName | null)[] = ['judged', 'receiving', 'received', null];

for (const kind of kinds) {
  test(`${kind}: no received mail that was answered 250 is lost, at whichever step the server is killed`, async (t) => {
    t.timeout(600_000);
    const host = '127.0.0.1';
    const port = await freePort(host);
    const around = await createCrashScene(t, kind, { POSTERN_INBOUND_PORT: String(port) });
    const { id, org_id: orgId } = await around.db('domains').where({ name: 'sender.invalid' }).first();
    await setDomainReceives(around.db, id, true);
    await addRoute(around.db, orgId, { pattern: 'sender.invalid', action: 'webhook' }, 1);
    const promised: string[] = [];
    let postern: PosternProcess | undefined;
    t.teardown(() => postern?.end('SIGKILL'));
    for (const step of steps) {
      postern = await startProcess(around.settings, step ? killAt(step) : []);
      let answers = 0;
      const onAnswer = () => {
        answers += 1;
        if (step === null && answers === nth) process.kill(postern!.pid, 'SIGKILL');
      };
      await Promise.all(
        Array.from({ length: senders }, (_, sender) =>
          sendUntilGone(port, `${step}-${sender}`, promised, onAnswer),
        ),
      );
      await postern.gone;
    }
    postern = await startProcess(around.settings);
    const rows: { id: string; message_id: string }[] = await around
      .db('received_mails')
      .where({ org_id: orgId })
      .select('id', 'message_id');
    const kept = rows.map(({ message_id }) => message_id);
    t.true(promised.length > 4 * (nth - 1), String(promised.length));
    t.deepEqual(
      promised.filter((one) => !kept.includes(one)),
      [],
      'nothing that was promised is lost',
    );
    t.is(new Set(kept).size, kept.length, 'nothing is kept twice');
    t.true(kept.length - promised.length <= steps.length * senders, 'what was not answered');
    const events: { data: string }[] = await around
      .db('events')
      .where({ type: 'email.received' })
      .select('data');
    t.deepEqual(
      events.map(({ data }) => JSON.parse(data).receivedId).sort(),
      rows.map(({ id }) => id).sort(),
      'each has one event',
    );
    const store = await around.db('received_stores').where({ org_id: orgId }).first();
    t.is(Number(store.mails), rows.length);
    t.is(await postern.end('SIGTERM'), 0);
  });
}

/** One mail after the other until the server is gone; notes the Message-IDs that were answered 250. */
async function sendUntilGone(
  port: number,
  name: string,
  promised: string[],
  onAnswer: () => void,
): Promise<void> {
  const talk = await connectSmtp(port);
  const send = async (id: string) => {
    await talk.begins('<ann@there.invalid>', '<orders@sender.invalid>');
    talk.write(`From: ann@there.invalid\r\nMessage-ID: <${id}>\r\n\r\nHello\r\n`);
    await talk.says('.\r\n', '250');
  };
  try {
    await talk.says('EHLO there.invalid\r\n', '250');
    for (let number = 0; ; number++) {
      const id = `${name}-${number}@there.invalid`;
      await send(id);
      promised.push(id);
      onAnswer();
    }
  } catch {
    // It is gone.
  } finally {
    talk.close();
  }
}
