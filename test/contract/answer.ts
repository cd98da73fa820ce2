/** What the interface says of every answer, and the parts of what arrives at the other end. */
import type { ExecutionContext } from 'ava';
import type { Answer, World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

export const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
export const isoForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Section 8 and the design's Versioning: on every response. */
export function hasHeaders(t: ExecutionContext, { status, headers }: Answer): void {
  t.regex(headers.get('content-type') ?? '', /^application\/json(; ?charset=utf-8)?$/i);
  t.is(headers.get('x-api-version'), '1');
  for (const name of ['limit', 'remaining', 'reset'])
    t.regex(headers.get(`x-ratelimit-${name}`) ?? 'none', /^\d+$/, name);
  t.true(Number(headers.get('x-ratelimit-remaining')) <= Number(headers.get('x-ratelimit-limit')));
  if (status === 429) t.regex(headers.get('retry-after') ?? 'none', /^[1-9]\d*$/);
  else t.is(headers.get('retry-after'), null, 'Retry-After is only on 429');
}

/** An error as section 2.5 has it, whole and nothing else; `expected` as in '403 FORBIDDEN'. */
export function isError(t: ExecutionContext, answer: Answer, expected: string, what = ''): void {
  const { status, body } = answer;
  t.is(`${status} ${body.error}`, expected, `${what} ${body.message}`);
  t.deepEqual(Object.keys(body).sort(), ['error', 'issues', 'message']);
  t.regex(body.message, /^\S+( \S+){2,}/, 'a sentence');
  hasHeaders(t, answer);
  if (body.error === 'VALIDATION_ERROR') t.true(body.issues.length > 0);
  else t.deepEqual(body.issues, []);
  for (const issue of body.issues) {
    t.deepEqual(Object.keys(issue).sort(), ['code', 'expected', 'message', 'path', 'received']);
    for (const name of ['code', 'expected', 'message', 'received'])
      t.true(typeof issue[name] === 'string' && issue[name] !== '', `${what}: ${name} is ${issue[name]}`);
    t.true(issue.path.every((step: unknown) => typeof step === 'string'));
  }
}

/** 400 VALIDATION_ERROR whose issues are at these paths, dots between their elements. */
export function isInvalid(t: ExecutionContext, answer: Answer, paths: string[], what = ''): void {
  isError(t, answer, '400 VALIDATION_ERROR', what);
  t.deepEqual(
    answer.body.issues.map(({ path }: { path: string[] }) => path.join('.')),
    paths,
    what,
  );
}

/** A full success: section 2.4 and no more. */
export function isSent(t: ExecutionContext, answer: Answer, accepted?: string[], what = ''): void {
  const { status, body } = answer;
  t.is(status, 200, `${what} ${JSON.stringify(body)}`);
  t.deepEqual(Object.keys(body).sort(), ['accepted', 'emailId', 'id', 'success'], what);
  t.is(body.success, true);
  t.regex(body.emailId, uuidForm);
  if (accepted) t.deepEqual(body.accepted, accepted, what);
  hasHeaders(t, answer);
}

/** The first answer again, and said to be that. */
export function isReplay(t: ExecutionContext, answer: Answer, first: Answer): void {
  t.deepEqual([answer.status, answer.body], [first.status, first.body]);
  t.is(answer.headers.get('idempotent-replayed'), 'true');
  t.is(first.headers.get('idempotent-replayed'), null);
  hasHeaders(t, answer);
}

/** Limit, Remaining, Reset, Retry-After. */
export const rate = ({ headers }: Answer) =>
  ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'retry-after'].map((name) =>
    headers.get(name),
  );

// What arrives.

export interface Mail {
  raw: Buffer;
  /** Every value of the header, unfolded. */
  header(name: string): string[];
  /** Leaves of the MIME tree, in order. */
  parts: { type: string; disposition: string; content: Buffer }[];
}

export async function mailTo(world: World, recipient: string): Promise<Mail> {
  const what = `a mail to ${recipient}`;
  const { raw } = await until(() => world.mx[0]!.messages.find(({ to }) => to.includes(recipient)), { what });
  const entity = raw.toString('latin1');
  return { raw, header: headOf(entity).header, parts: leaves(entity) };
}

function headOf(entity: string) {
  const end = entity.indexOf('\r\n\r\n');
  const lines = entity
    .slice(0, end)
    .replace(/\r\n(?=[ \t])/g, '')
    .split('\r\n');
  const header = (name: string) =>
    lines
      .filter((line) => line.toLowerCase().startsWith(`${name.toLowerCase()}:`))
      .map((line) => line.slice(name.length + 1).trim());
  return { header, body: entity.slice(end + 4) };
}

function leaves(entity: string): Mail['parts'] {
  const { header, body } = headOf(entity);
  const [type = 'text/plain'] = header('Content-Type');
  const boundary = /^multipart\/.*boundary="?([^";]+)/i.exec(type)?.[1];
  if (boundary !== undefined) {
    const inner = `\r\n${body}`.split(`\r\n--${boundary}`).slice(1, -1);
    return inner.flatMap((part) => leaves(part.replace(/^\r\n/, '')));
  }
  const [encoding = ''] = header('Content-Transfer-Encoding');
  const [disposition = ''] = header('Content-Disposition');
  return [{ type, disposition, content: decoded(body, encoding.toLowerCase()) }];
}

function decoded(body: string, encoding: string): Buffer {
  if (encoding === 'base64') return Buffer.from(body, 'base64');
  if (encoding !== 'quoted-printable') return Buffer.from(body, 'latin1');
  const plain = body
    .replace(/=\r\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(plain, 'latin1');
}
