/**
 * One request for each route of the dashboard's access table that goes well where it is allowed. A sample makes what it
 * acts on, anew each time, in the organization that it is given; so tests can ask for it as one of its own, and as
 * another's. A route without a sample fails those tests: give it one here, or in
 * dashboard-org-samples.ts.
 */
import { TOTP } from 'otpauth';
import { makeLink } from '#accounts/people/one-time-links.ts';
import { type AccessEntry, accessTable } from '#front/dashboard/security/route-access.ts';
import { password } from '../browser/browser.ts';
import { orgSamples } from './dashboard-org-samples.ts';
import type { Sample, Sampler } from './dashboard-sample.ts';
import type { Scene } from './dashboard-scene.ts';

const nothing: Sampler = () => ({});

const reason = 'because';

const samples: Record<string, Sampler> = {
  'GET /dashboard': nothing,
  'GET /dashboard/sign-in': nothing,
  'POST /dashboard/sign-in': async ({ world, make }) => {
    const { email } = await world
      .db('users')
      .where({ id: await make.user('Ann') })
      .first('email');
    return { fields: { email, password } };
  },
  'POST /dashboard/sign-in/code': () => ({ fields: { half_way: 'x', code: '000000' }, status: 422 }),
  'GET /dashboard/forgotten': nothing,
  'POST /dashboard/forgotten': () => ({ fields: { email: 'nobody@postern.invalid' } }),
  'POST /dashboard/sign-out': nothing,
  // There is an operator.
  'GET /dashboard/set-up/:token': () => ({ params: { token: 'x' }, status: 404 }),
  'POST /dashboard/set-up/:token': () => ({ params: { token: 'x' }, status: 404 }),
  'GET /dashboard/welcome/:token': (scene) => welcome(scene),
  'POST /dashboard/welcome/:token': async (scene) => ({ ...(await welcome(scene)), fields: { password } }),
  // An invitation lets in those who have its address only (test/front/dashboard/team.test.ts).
  'GET /dashboard/join/:token': () => ({ params: { token: 'x' }, status: 404 }),
  'POST /dashboard/join/:token': () => ({ params: { token: 'x' }, status: 404 }),
  'GET /dashboard/sign-in/:token': async ({ world, make }) => {
    const userId = await make.user('Ann');
    const { path } = await makeLink(world.db, { purpose: 'sign-in', userId }, world.clock.now());
    return { params: { token: path.split('/').at(-1)! } };
  },
  'POST /dashboard/theme': () => ({ fields: { theme: 'dark' } }),

  'GET /dashboard/account': nothing,
  'POST /dashboard/account/name': () => ({ fields: { name: 'Ann' } }),
  'POST /dashboard/account/password': () => ({ fields: { current: password, password } }),
  'GET /dashboard/account/second-factor': nothing,
  'POST /dashboard/account/second-factor': async ({ world }, _org, visitor) => {
    const { html, forms } = await visitor.get('/dashboard/account/second-factor');
    const secret = /[A-Z2-7]{4}(?: [A-Z2-7]{4}){4,}/.exec(html)?.[0].replaceAll(' ', '') ?? '';
    const sealed = forms.flatMap(({ fields }) => fields.get('sealed') ?? [])[0] ?? '';
    if (secret === '') return {};
    const code = new TOTP({ secret }).generate({ timestamp: world.clock.now() });
    return { fields: { sealed, code, current: password } };
  },
  'POST /dashboard/account/second-factor/off': () => ({ fields: { current: password } }),
  'POST /dashboard/account/sessions/end': async ({ world }, org, visitor) => {
    const mine = await world.db('sessions').orderBy('id', 'desc').first('id');
    const theirs = await world.db('sessions').where({ user_id: org.people.owner }).first('id');
    return { fields: { id: (visitor.jar.has('postern-session') ? mine : theirs).id } };
  },
  'POST /dashboard/account/sessions/end-others': nothing,

  'GET /dashboard/organizations': nothing,
  'POST /dashboard/organizations': () => ({ fields: { name: 'New' } }),

  'GET /dashboard/queue': nothing,
  'GET /dashboard/queue/to/:destination': () => ({ params: { destination: 'there.invalid' } }),
  'GET /dashboard/queue/action': () => ({ query: 'action=hold&domain=there.invalid' }),
  'POST /dashboard/queue/actions': () => ({ fields: { action: 'hold', domain: 'nowhere.invalid', reason } }),
  'POST /dashboard/queue/suspend': () => ({ fields: { destination: 'nowhere.invalid', for: '1h', reason } }),
  'POST /dashboard/queue/resume': () => ({ fields: { destination: 'nowhere.invalid', reason } }),
  'GET /dashboard/doctor': nothing,
  'POST /dashboard/doctor': nothing,

  ...orgSamples,
};

async function welcome({ world, make }: Scene): Promise<Sample> {
  const userId = await make.user('Ann');
  const { path } = await makeLink(world.db, { purpose: 'reset', userId }, world.clock.now());
  return { params: { token: path.split('/').at(-1)! } };
}

/** The table, each entry with its sample. */
export const sampledTable: (AccessEntry & { route: string; sample: Sampler })[] = accessTable().map(
  (entry) => {
    const route = `${entry.method} ${entry.path}`;
    const sample =
      samples[route] ??
      (() =>
        Promise.reject(new Error(`test/lab/scenes/dashboard-samples.ts: give me a sample for ${route}`)));
    return { ...entry, route, sample };
  },
);

/** Of a route that is no more. */
export const staleSamples: string[] = Object.keys(samples).filter(
  (route) => !sampledTable.some((entry) => entry.route === route),
);

export function pathOf(
  { path }: Pick<AccessEntry, 'path'>,
  orgId: string,
  { params = {}, query }: Sample,
): string {
  const filled = path
    .replace(':org', orgId)
    .replaceAll(/:(\w+)/g, (_, name: string) =>
      encodeURIComponent(params[name] ?? `no-${name}-in-the-sample`),
    );
  return query === undefined ? filled : `${filled}?${query}`;
}

/** The fields of a form as they are posted. */
export const pairs = (fields: Record<string, string | string[]> = {}): [string, string][] =>
  Object.entries(fields).flatMap(([name, values]) =>
    [values].flat().map((one): [string, string] => [name, one]),
  );
