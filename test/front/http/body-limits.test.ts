/** Every route that could have a body says what it may have: without that, the server does not start. */
import test from 'ava';
import { dialectsNamed } from '#front/dialects/all-dialects.ts';
import type { DialectRoute } from '#front/dialects/dialect.ts';
import { type ServeParts, serveDialects } from '#front/dialects/serve-dialects.ts';
import { formBody, jsonBody, noBody, requireDeclaration } from '#front/http/body-limits.ts';
import { dialectNames } from '#platform/values/glossary.ts';

/** Of a dialect with this route beside its own. */
function serve(name: (typeof dialectNames)[number], route: DialectRoute) {
  const [dialect] = dialectsNamed([name]);
  const routes = [...dialect!.routes, route];
  return serveDialects([{ ...dialect!, routes }], { admission: { maxSlots: 1 } } as ServeParts);
}

for (const name of dialectNames) {
  test(`${name}: a new route without limits of its body does not start`, (t) => {
    const respond = async () => ({});
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const route = { route: `${method} /new/:id`, grant: 'full_access', respond } as const;
      const message = `${method} /new/:id: the route declares no limits of its body. Give it jsonBody, formBody or csvBody with limits, or noBody (front/http/body-limits.ts).`;
      t.throws(() => serve(name, route), { message });
      for (const body of [noBody, jsonBody({ largest: 1, members: 1 }), formBody({ largest: 1, fields: 1 })])
        t.notThrows(() => serve(name, { ...route, body }));
    }
    t.notThrows(() => serve(name, { route: 'GET /new/:id', grant: 'full_access', respond }));
  });
}

test('something else in the place of limits is no declaration', (t) => {
  t.throws(() => requireDeclaration('POST /new', {} as { kind: string }), { message: /no limits/ });
});
