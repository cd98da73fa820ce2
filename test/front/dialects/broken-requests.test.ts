/** Broken requests of every kind: each gets an error in the form of its service, and nothing is stored or charged. */
import test from 'ava';
import { checkBroken, goodRequests, type Target } from '#lab/broken-requests.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';

type Form = Pick<Target, 'isError' | 'isRefusedIn2xx'> & { headers(world: World): Target['headers'] };

const bearer = ({ key }: World) => ({ authorization: `Bearer ${key}` });

const forms: Record<string, Form> = {
  resend: {
    headers: bearer,
    isError: ({ status, json }) =>
      json?.statusCode === status && typeof json.name === 'string' && typeof json.message === 'string',
  },
  postmark: {
    headers: ({ key }) => ({ 'x-postmark-server-token': key }),
    isError: ({ json }) => Number.isInteger(json?.ErrorCode) && json.ErrorCode > 0 && json.Message !== '',
    isRefusedIn2xx: ({ json }) => Array.isArray(json) && json.every(({ ErrorCode }) => ErrorCode > 0),
  },
  sendgrid: {
    headers: bearer,
    isError: ({ json }) =>
      Array.isArray(json?.errors) && json.errors.length > 0 && typeof json.errors[0].message === 'string',
  },
  mailgun: {
    headers: ({ key }) => ({ authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}` }),
    isError: ({ status, text, json }) =>
      status === 401 ? text === 'Forbidden' : typeof json?.message === 'string',
  },
};

for (const [dialect, { headers, ...form }] of Object.entries(forms)) {
  test(`${dialect}: a broken request gets an error in its form, and nothing is stored or charged`, async (t) => {
    const world = await startWorld(t, { tenant: { quota: 1_000_000 } });
    const { emailId } = (await world.send({ to: 'ann@there.invalid' })).body;
    const good = goodRequests(`dialects/good-${dialect}`, { $id: emailId, $org: world.orgId });
    await checkBroken(t, world, {
      base: `${world.url()}/compat/${dialect}`,
      headers: headers(world),
      good,
      ...form,
    });
  });
}
