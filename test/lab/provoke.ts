/** Provokes the errors that the document lists; the real server answers them as their examples say. */
import type { ExecutionContext } from 'ava';
import { newKey } from '#accounts/api-keys.ts';
import { insertKey } from '#accounts/rows/keys.ts';
import type { Method } from '#front/api/openapi/openapi-types.ts';
import { type Contract, operationsOf } from './openapi.ts';
import type { Hold } from './recorded-examples.ts';
import type { Answer, World } from './scenes/world.ts';
import { until } from './until.ts';

export async function keyWith(world: World, orgId: string, ...scopes: string[]) {
  const { key, hash, hint } = newKey();
  await insertKey(world.db, { orgId, label: 'another', hash, hint, scopes }, Date.now());
  return { authorization: `Bearer ${key}` };
}

/** Calls until the error comes (what is changed in the database holds within a second), then looks at it. */
export async function provoker(
  t: ExecutionContext,
  { check, document }: Contract,
  provoked: Set<string>,
  hold: Hold,
) {
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
    const { operationId } = document.paths[path]![method]!;
    hold(t, `${operationId} ${status} application/json ${code}`, answer.body);
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
