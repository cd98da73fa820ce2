/**
 * The floor of the bench: the cost of each step of a mail's path through Postern, alone and in a process of its own. What a
 * mail costs beyond their sum is the cost of combining them.
 *
 * Each step is the function that Postern calls, on the mail of a case: `http` is Koa and the JSON body, `compose` and `sign`
 * are mail/compose/, `commit` is the acceptance transaction with a hundred sends, `smtp` is a session that is reused, `record` is
 * the transaction of a hundred outcomes. CPU time is that of the whole process, including libuv's threads.
 */

import { fork } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import Koa from 'koa';
import { newDkimKey } from '#accounts/domains.ts';
import { sendBody } from '#front/api/send/send-body.ts';
import { parseJson, readBody } from '#front/http/request-body.ts';
import { startLoader } from '#lab/load/loader.ts';
import { composeMime, type Fields, toBytes } from '#mail/compose/mime.ts';
import { signatures } from '#mail/compose/sign.ts';
import { openSession } from '#mail/deliver/smtp-out/session.ts';
import { createTranscript } from '#mail/deliver/smtp-out/transcript.ts';
import { defaultTimeouts } from '#platform/settings/durations.ts';
import { bodyOf, type Case, recipientsOf } from './bench-cases.ts';
import { openTransactions } from './floor-transactions.ts';

export interface Step {
  step: string;
  /** Microseconds per mail. */
  cpuUs: number;
  wallUs: number;
}

export interface FloorOptions {
  work: Case;
  mails: number;
  sink: { host: string; port: number };
  /** Directory of the database. */
  directory: string;
}

/** Runs the steps in a separate process. */
export async function measureFloor(options: FloorOptions, interrupted: AbortSignal): Promise<Step[]> {
  const child = fork(import.meta.filename, [JSON.stringify(options)], { signal: interrupted });
  const [steps] = await Promise.race([once(child, 'message'), once(child, 'exit')]);
  if (!Array.isArray(steps)) throw new Error('the floor could not be measured; see above');
  return steps;
}

// Everything below runs in that process.

/** The first half of the mails warms up, the second half counts. `run` handles the given number of mails. */
async function measure(step: string, mails: number, run: (mails: number) => Promise<void>): Promise<Step> {
  await run(mails);
  const cpu = process.cpuUsage();
  const begun = performance.now();
  await run(mails);
  const wallUs = ((performance.now() - begun) * 1000) / mails;
  const { user, system } = process.cpuUsage(cpu);
  return { step, cpuUs: (user + system) / mails, wallUs };
}

async function oneByOne(mails: number, act: () => Promise<unknown>): Promise<void> {
  for (let count = 0; count < mails; count++) await act();
}

function fieldsOf(work: Case): Fields {
  const { text, html, subject } = JSON.parse(bodyOf(work));
  return {
    from: {
      name: 'Shop',
      address: 'shop@sender.invalid',
      domain: 'sender.invalid',
      header: '',
    } as Fields['from'],
    to: [{ name: '', address: 'rcpt-1@there1.invalid' }],
    subject,
    text,
    html,
    attachments: [],
    headers: {},
    messageId: 'one@postern.invalid',
    date: Date.now(),
  };
}

async function http({ work, mails }: FloorOptions): Promise<Step> {
  const app = new Koa();
  app.use(async (context) => {
    const { to } = (await parseJson(await readBody(context.req, { add: () => true }, sendBody))) as {
      to: string;
    };
    context.body = { success: true, id: 'one@postern.invalid', accepted: [to] };
  });
  const server = createServer(app.callback()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const loader = await startLoader();
  const order = { url, key: 'none', body: bodyOf(work), parallel: 16, rate: null, batch: 1 };
  try {
    return await measure('http', mails, async (count) => {
      await loader.run({ ...order, to: recipientsOf(work, count, 'http') });
    });
  } finally {
    await loader.stop();
    server.closeAllConnections();
    server.close();
  }
}

async function smtp({ mails, sink }: FloorOptions, message: Buffer): Promise<Step> {
  const socket = connect(sink);
  await once(socket, 'connect');
  const stopped = new AbortController().signal;
  const transcript = () => createTranscript(() => performance.now());
  const opened = await openSession({
    socket,
    host: 'mx.invalid',
    address: sink.host,
    domain: 'there1.invalid',
    name: 'postern.invalid',
    source: null,
    sourcePool: 'default',
    demand: { policy: 'opportunistic' },
    tls: null,
    timeouts: defaultTimeouts,
    transcript: transcript(),
    stopped,
  });
  if (!('session' in opened))
    throw new Error(`the sink does not take mail: ${JSON.stringify(opened.result)}`);
  const { session } = opened;
  const mail = { from: 'bounce@postern.invalid', to: 'rcpt@there1.invalid', message };
  const step = await measure('smtp', mails, (count) =>
    oneByOne(count, async () => {
      const { result: ending } = await session.send(mail, transcript(), stopped);
      if (ending.kind !== 'accepted' || !(await session.tidy())) throw new Error(JSON.stringify(ending));
    }),
  );
  await session.quit();
  return step;
}

async function allSteps(options: FloorOptions): Promise<Step[]> {
  const { work, mails } = options;
  const fields = fieldsOf(work);
  const { selector, privateKey } = await newDkimKey();
  const signer = { domain: 'sender.invalid', selector, privateKey: createPrivateKey(privateKey) };
  const { message } = composeMime(fields);
  const sign = () => signatures(message, signer, Date.now());
  const signed = toBytes({ ...message, fields: [...sign(), ...message.fields] });
  const steps = [
    await http(options),
    await measure('compose', mails, (count) => oneByOne(count, async () => composeMime(fields))),
    await measure('sign', mails, (count) => oneByOne(count, async () => sign())),
  ];
  const transactions = await openTransactions(options.directory, signed);
  steps.push(await measure('commit', mails, transactions.accept));
  steps.push(await smtp(options, signed));
  steps.push(await measure('record', mails, transactions.record));
  await transactions.close();
  return steps;
}

if (import.meta.main) {
  process.send!(await allSteps(JSON.parse(process.argv[2]!)));
  process.disconnect();
}
