/**
 * Errors of the document's, provoked: the real server answers them as their examples say. What differs from one call and
 * one machine to the next is masked.
 */
import type { ExecutionContext } from 'ava';
import { newKey } from '../../src/accounts/api-keys.ts';
import type { Method } from '../../src/api/openapi/openapi-types.ts';
import { insertKey } from '../../src/db/accounts/keys.ts';
import { type Contract, operationsOf } from './openapi.ts';
import type { Answer, World } from './scenes/world.ts';
import { until } from './until.ts';

export async function keyWith(world: World, orgId: string, ...scopes: string[]) {
  const { key, hash, hint } = newKey();
  await insertKey(world.db, { orgId, label: 'another', hash, hint, scopes }, Date.now());
  return { authorization: `Bearer ${key}` };
}

export function masked(value: unknown): unknown {
  const text = JSON.stringify(value)
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UUID')
    .replace(/"[\w-]{32}@/g, '"MESSAGE@')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/\b\d+\.\d+\.\d+\.\d+\b/g, 'IP')
    .replace(/\bem_[\w-]+/g, 'KEY')
    .replace(/whsec_[\w+/]+=*/g, 'SECRET')
    .replace(/pstn[0-9a-f]{8}/g, 'SELECTOR')
    .replace(/p=[\w+/=]{16,}/g, 'p=KEY')
    .replace(/"durationMs":\d+/g, '"durationMs":1')
    .replace(/"port":\d+/g, '"port":25')
    .replace(/"verified":\w+/g, '"verified":true');
  return JSON.parse(text);
}

/** Calls until the error comes (what is changed in the database holds within a second), then looks at it. */
export async function provoker(t: ExecutionContext, { check, document }: Contract, provoked: Set<string>) {
  return async (method: Method, path: string, status: number, code: string, call: () => Promise<Answer>) => {
    let last: Answer | undefined;
    const answer = await until(
      async () => {
        last = await call();
        return last.status === status && last.body.error === code && last;
      },
      { what: () => `${status} ${code}, last ${JSON.stringify(last?.body)}` },
    );
    check(t, method, path, answer);
    const examples = document.paths[path]![method]!.responses[status]!.content['application/json']!.examples!;
    t.deepEqual(masked(answer.body), masked(examples[code]!.value));
    provoked.add(`${method} ${path} ${status} ${code}`);
  };
}

/** All that the operations with these tags have. */
export function errorExamples({ document }: Contract, tags: string[]): string[] {
  const own = operationsOf(document).filter(({ operation }) => tags.includes(operation.tags[0]!));
  return own.flatMap(({ path, method, operation: { responses } }) =>
    Object.entries(responses)
      .filter(([status]) => status >= '400')
      .flatMap(([status, { content }]) =>
        Object.keys(content['application/json']!.examples!).map(
          (code) => `${method} ${path} ${status} ${code}`,
        ),
      ),
  );
}
