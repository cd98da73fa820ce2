/** Attachments at a URL, fetched before a send is accepted: what arrives, what is refused, what is not fetched. */
import type { ServerResponse } from 'node:http';
import test, { type ExecutionContext } from 'ava';
import { startFileServer } from '#lab/scenes/file-server.ts';
import { worldOfFile } from '#lab/scenes/shared-world.ts';
import { asNewTenant, startWorld, type World } from '#lab/scenes/world.ts';
import { table } from '#lab/table.ts';
import { until } from '#lab/until.ts';
import { readSources } from '#mail/record/rows/emails.ts';

const zone = { 'files.invalid': { A: ['127.0.0.1'] } };
const settings = { POSTERN_ATTACHMENT_ALLOW_PRIVATE: 'true' };

const at = (...urls: string[]) => ({
  to: 'ann@there.invalid',
  attachments: urls.map((url) => ({ filename: 'a.bin', url })),
});

function answer(path: string, response: ServerResponse): unknown {
  switch (path) {
    case '/moved':
      return response.writeHead(302, { location: '/file' }).end();
    case '/file':
      return response.end(Buffer.from([0, 1, 2]));
    case '/large':
      return response.end(Buffer.alloc(10 * 1024 * 1024 + 1));
    case '/loop':
      return response.writeHead(307, { location: '/loop' }).end();
    case '/ftp':
      return response.writeHead(301, { location: 'ftp://files.invalid/a' }).end();
    case '/short':
      return response.writeHead(200, { 'content-length': '9' }).end('a', () => response.destroy());
    case '/chunks':
      return response.write('half', () => response.destroy());
    case '/reset':
      return response.socket!.write('HTTP/1.0 200 OK\r\n\r\nhalf', () =>
        setImmediate(() => response.socket!.resetAndDestroy()),
      );
    case '/closed':
      return response.socket!.end('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhalf');
    case '/coding':
      return response.socket!.end('HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nhalf');
    case '/two-lengths':
      return response.socket!.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 4\r\n\r\nhalf');
    case '/gzip':
      return response.writeHead(200, { 'content-encoding': 'gzip' }).end('a');
    case '/switch':
      return response.socket!.write(
        'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
      );
    case '/empty':
      return response.end();
    case '/never':
      return;
    default:
      return response.writeHead(404).end();
  }
}

const shared = worldOfFile({ zone, settings });

async function start(t: ExecutionContext) {
  const world = await asNewTenant(shared(), { quota: 10 });
  return { world, files: await startFileServer(t, answer) };
}

async function isUntouched(t: ExecutionContext, { db, orgId }: World, used: number): Promise<void> {
  t.is((await db('emails').where({ org_id: orgId }).select('id')).length, used, 'nothing else was stored');
  t.is((await db('organizations').where({ id: orgId }).first('quota_used')).quota_used, used);
  t.is(
    (await db('credit_entries').where({ org_id: orgId }).whereNotNull('email_id').select('id')).length,
    used,
  );
}

test('a file is fetched, through a redirect, and a repeat fetches nothing', async (t) => {
  const { world, files } = await start(t);
  const sent = { ...at(`${files.url}/moved`), idempotencyKey: 'once' };
  const first = await world.send(sent);
  t.is(first.status, 200, JSON.stringify(first.body));
  const [raw] = await readSources(world.db, first.body.emailId);
  t.regex(raw!.toString(), /filename=a\.bin\r\n\r\nAAEC\r\n/);
  t.deepEqual((await world.send(sent)).body, first.body);
  t.is((await world.send({ ...at(`${files.url}/other`), idempotencyKey: 'once' })).body.error, 'BAD_REQUEST');
  const poor = await asNewTenant(world, { quota: 0 });
  t.is((await poor.send(at(`${files.url}/file`))).body.error, 'INSUFFICIENT_CREDITS');
  t.deepEqual(files.asked, ['/moved', '/file'], 'neither a repeat nor a refused send fetched anything');
  await isUntouched(t, world, 1);
});

const failures: [path: string, reason: RegExp][] = table('api/failed-downloads');

test('a file that cannot be fetched is refused with the reason, and nothing is charged', async (t) => {
  const { world, files } = await start(t);
  for (const [path, reason] of failures) {
    const send = { ...at(`${files.url}/file`, `${files.url}${path}`), idempotencyKey: path };
    const { status, body } = await world.send(send);
    t.is(status, 400, path);
    t.is(body.error, 'VALIDATION_ERROR');
    t.deepEqual(body.issues[0].path, ['attachments', '1', 'url']);
    t.regex(body.issues[0].message, reason);
  }
  await isUntouched(t, world, 0);
  const again = await world.send({ ...at(`${files.url}/file`), idempotencyKey: '/gone' });
  t.is(again.status, 200, 'the key is free after a failure');
});

test('the fetch ends after 15 seconds, and when the client hangs up', async (t) => {
  // A world of its own, because its clock moves.
  const world = await startWorld(t, { zone, settings, tenant: { quota: 10 } });
  const files = await startFileServer(t, answer);
  const answered = world.send(at(`${files.url}/file`, `${files.url}/never`, `${files.url}/never`));
  await until(() => files.asked.length === 3 && files.open.size === 2);
  await world.clock.advance(15_000);
  const { status, body } = await answered;
  t.is(status, 400);
  t.deepEqual(
    body.issues.map(({ path }: { path: string[] }) => path[1]),
    ['1', '2'],
  );
  t.regex(body.issues[0].message, /longer than 15 s/);
  await until(() => files.open.size === 0, { what: 'the connections to be closed' });

  const hangUp = new AbortController();
  const sendBody = JSON.stringify({
    from: 'app@sender.invalid',
    subject: 'a',
    text: 'a',
    ...at(`${files.url}/never`),
  });
  const sent = world.call('POST', '/api/public/email/send', { body: sendBody, signal: hangUp.signal });
  await until(() => files.open.size === 1);
  hangUp.abort();
  await t.throwsAsync(sent, { name: 'AbortError' });
  await until(() => files.open.size === 0, { what: 'the connection to be closed' });
  await world.stop();
  await isUntouched(t, world, 0);
});

test('a private address is refused, and nothing connects to it', async (t) => {
  const world = await startWorld(t, { zone });
  const { asked, port } = await startFileServer(t, answer);
  for (const host of ['files.invalid', '127.0.0.1', 'localhost', '[::1]', '169.254.169.254']) {
    const { status, body } = await world.send(at(`http://${host}:${port}/`));
    t.is(status, 400, host);
    t.regex(body.issues[0].message, /attachments\.0\.url: .*private/);
  }
  t.deepEqual(asked, []);
});

test('what a url may be', async (t) => {
  const { world, files } = await start(t);
  const issuesOf = async (attachments: object[]) => {
    const { status, body } = await world.send({ to: 'ann@there.invalid', attachments });
    t.is(status, 400);
    return body.issues.map(({ path }: { path: string[] }) => path.join('.'));
  };
  const file = (fields: object) => ({ filename: 'a.bin', ...fields });
  const wrong = [
    '',
    'a',
    '/a',
    'ftp://a.invalid/',
    'http://u:p@a.invalid/',
    `http://a.invalid/${'a'.repeat(2048)}`,
  ];
  t.deepEqual(
    await issuesOf(wrong.map((url) => file({ url }))),
    wrong.map((_, index) => `attachments.${index}.url`),
  );
  t.deepEqual(await issuesOf([file({ url: files.url, content: 'aGk=' }), file({})]), [
    'attachments.0.url',
    'attachments.1.content',
  ]);
  t.deepEqual(await issuesOf(Array(11).fill(file({ url: files.url }))), ['attachments']);
  t.deepEqual(files.asked, []);
});

test('in a batch each element fetches its own files, and is refused by itself', async (t) => {
  const { world, files } = await start(t);
  const element = (path: string, idempotencyKey: string) => ({
    from: 'app@sender.invalid',
    subject: 'Hello',
    text: 'Hello',
    idempotencyKey,
    ...at(`${files.url}${path}`),
  });
  const elements = [element('/file', 'good'), element('/missing', 'bad'), element('/moved', 'moved')];
  const send = (query = '') =>
    world.call('POST', `/api/public/email/batch${query}`, { body: JSON.stringify(elements) });
  const atomic = await send('?atomic=true');
  t.is(atomic.status, 400);
  t.is(atomic.body.index, 1);
  await isUntouched(t, world, 0);
  const { body } = await send();
  t.deepEqual(
    body.results.map(({ status }: { status: number }) => status),
    [200, 400, 200],
  );
  await isUntouched(t, world, 2);
});

test('a key that is revoked while files are fetched sends nothing', async (t) => {
  const { world, files } = await start(t);
  const body = '{"label":"leaked","scopes":["full_access"]}';
  const { id, key } = (await world.call('POST', '/api/public/keys', { body })).body;
  const headers = { authorization: `Bearer ${key}` };
  const mail = { from: 'app@sender.invalid', subject: 'Hello', text: 'Hello', to: 'ann@there.invalid' };
  const late = { ...mail, ...at(`${files.url}/never`) };
  const calls: [path: string, body: object][] = [
    ['/api/public/email/send', late],
    ['/api/public/email/batch', [mail, late]],
    ['/compat/resend/emails', { ...mail, attachments: [{ filename: 'a.bin', path: `${files.url}/never` }] }],
  ];
  const answers = calls.map(([path, content]) =>
    world.call('POST', path, { headers, body: JSON.stringify(content) }),
  );
  await until(() => files.open.size === 3, { what: 'the files to be asked for' });
  await world.call('DELETE', `/api/public/keys/${id}`);
  const isOver = async () => (await world.call('GET', '/api/public/emails', { headers })).status === 401;
  await until(isOver, { what: 'the key to end' });
  for (const response of files.open) response.end('late');
  t.deepEqual(
    (await Promise.all(answers)).map(({ status }) => status),
    [401, 401, 403],
  );
  await isUntouched(t, world, 0);
});
