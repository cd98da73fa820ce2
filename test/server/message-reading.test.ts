/** Stored messages are read on a thread of its own: what its sender wrote never stops the service. */
import { tmpdir } from 'node:os';
import { Worker, type WorkerOptions } from 'node:worker_threads';
import test, { type ExecutionContext } from 'ava';
import { createReadSubmitted } from '#front/submission/read-submitted.ts';
import { createMessageReader } from '#server/message-reading.ts';

const source = { dataDir: tmpdir(), secret: 'a secret of the tests, long enough', secretOthers: [] };

function startReader(t: ExecutionContext, guard = {}) {
  const errors: unknown[] = [];
  const parts = {
    startThread: (entry: URL, options: WorkerOptions) => new Worker(entry, options),
    onError: (_what: string, error: unknown) => errors.push(error),
  };
  const reader = createMessageReader(source, parts, guard);
  t.teardown(() => reader.close());
  return { reader, errors };
}

const message = (body: string, fields = '') =>
  Buffer.from(
    [
      'Subject: Hello',
      'MIME-Version: 1.0',
      'Content-Type: multipart/mixed; boundary=b',
      fields,
      '',
      '--b',
      'Content-Type: text/html',
      'Content-Transfer-Encoding: quoted-printable',
      '',
      body,
      '--b',
      'Content-Type: text/plain',
      'Content-Disposition: attachment; filename=a.txt',
      '',
      'the file',
      '--b--',
      '',
    ]
      .filter((line, index) => line !== '' || index !== 3)
      .join('\r\n'),
  );

test('a message is read as its page, its preview, its files and the mail to send again', async (t) => {
  const { reader, errors } = startReader(t);
  const raw = message('<p>=C3=A9 <a href=3D"https://app.invalid/">x</a></p>', 'DKIM-Signature: v=1');
  const shown = await reader.shown('org', raw, 'links');
  t.is(shown?.view, 'links');
  t.deepEqual(
    shown?.attachments.map(({ name }) => name),
    ['a.txt'],
  );
  t.is(await reader.html('org', raw), '<p>é <a href="https://app.invalid/">x</a></p>');
  const files = await reader.files('org', raw, '0');
  t.like(files?.[0], { id: '0', filename: 'a.txt', size: 8 });
  t.is(String(files?.[0]?.content), 'the file');
  t.is((await reader.files('org', raw, null))?.[0]?.content, null);
  const unsent = await reader.unsent('org', raw);
  t.true(Buffer.isBuffer(unsent));
  t.false(unsent?.includes('DKIM-Signature'));
  t.is(
    await reader.files('org', Buffer.from('Content-Type: multipart/mixed; boundary=b\r\n'.repeat(600)), null),
    null,
  );
  t.deepEqual(errors, []);
});

test('white space in a quoted-printable line is read in time that is linear in it', async (t) => {
  const { reader, errors } = startReader(t);
  const blanks = `${`${' '.repeat(500_000)}x\t`.repeat(4)}\r\n${'=20'.repeat(100_000)}`;
  t.truthy(await reader.html('org', message(blanks)));
  t.deepEqual(errors, [], 'two megabytes within ten seconds');
});

/** Reads the first byte, but for messages of these words. */
const trap = `
  const { parentPort } = require('node:worker_threads');
  parentPort.on('message', ({ raw }) => {
    const text = Buffer.from(raw).toString();
    parentPort.postMessage('begun');
    if (text === 'hang') for (;;);
    if (text === 'eat') { const all = []; for (;;) all.push(new Array(1e6).fill({})); }
    parentPort.postMessage(text);
  });`;

test('a message that hangs or feeds on the thread cannot be read; all others can, and organizations take turns', async (t) => {
  const spawn = () => new Worker(trap, { eval: true, resourceLimits: { maxOldGenerationSizeMb: 32 } });
  const { reader, errors } = startReader(t, { spawn, timeoutMs: 1000 });
  const order: string[] = [];
  const read = async (orgId: string, text: string) => {
    const html = await reader.html(orgId, Buffer.from(text));
    order.push(`${orgId} ${html}`);
  };
  await Promise.all([read('a', 'hang'), read('a', 'eat'), read('a', '1'), read('b', '2'), read('b', '3')]);
  t.deepEqual(order, ['a null', 'a null', 'b 2', 'a 1', 'b 3']);
  t.is(errors.length, 2);
});

const submitted = { to: ['ann@there.invalid'], requestId: 'r', requireTls: false, received: 'by host' };
const large = (lines: string[]) =>
  Buffer.from(['From: App <app@sender.invalid>', ...lines, '', 'x\r\n'.repeat(200_000)].join('\r\n'));

test('a large submitted message is read on the thread as a small one is here, refusals too', async (t) => {
  const { reader, errors } = startReader(t);
  const submit = createReadSubmitted(reader.submitted);
  const raw = large(['Subject: Hi', 'Bcc: bob@there.invalid', 'X-Option-A: b', 'X-Postern-Tag-a: b']);
  const request = await submit('org', raw, { ...submitted, removedPrefix: 'x-option-' });
  t.like(request, { from: 'App <app@sender.invalid>', subject: 'Hi', tags: { a: 'b' } });
  t.true(Buffer.isBuffer(request.rawMessage?.raw));
  t.true(request.rawMessage?.raw.equals(large(['Subject: Hi'])));
  await t.throwsAsync(submit('org', large(['Subject: Hi', 'Subject: Ho']), submitted), {
    name: 'Refusal',
    message: 'subject: the field occurs more than once',
  });
  const bare = await submit('org', large(['Subject: Hi\nX: y']), { ...submitted, mayHaveBareLineEnds: true });
  t.true(bare.rawMessage?.raw.equals(large(['Subject: Hi', 'X: y'])));
  t.deepEqual(errors, []);
});

test('a submitted message that takes too long to read is refused', async (t) => {
  const hang = `const { parentPort } = require('node:worker_threads');
    parentPort.on('message', () => { parentPort.postMessage('begun'); for (;;); });`;
  const { reader } = startReader(t, { spawn: () => new Worker(hang, { eval: true }), timeoutMs: 200 });
  const submit = createReadSubmitted(reader.submitted);
  await t.throwsAsync(submit('org', large(['Subject: Hi']), submitted), {
    name: 'Refusal',
    message: /takes too long to read/,
  });
});
