/** An organization has its share of the pages that are made at once, however many people it has. */
import { setImmediate } from 'node:timers/promises';
import test from 'ava';
import type { Context } from 'koa';
import type { OrgVisit } from '#front/dashboard/page.ts';
import { createRequestSlots } from '#front/dashboard/request-slots.ts';

/** The parts of a visit that decide. */
function visit(org: string, user: string, isOperator = false): OrgVisit {
  const context = { set() {} };
  return { context, user: { id: user, isOperator }, org: { id: org } } as unknown as OrgVisit;
}

test('a network leaves places to others, whatever its browsers say of themselves; those beyond wait', async (t) => {
  const slots = createRequestSlots();
  const { promise, resolve } = Promise.withResolvers<void>();
  let begun = 0;
  const ask = (client: string) => {
    const context = { state: { client }, res: { closed: false } } as unknown as Context;
    return slots.whileAuthorizing(context, () => {
      begun += 1;
      return promise;
    });
  };
  const held = [1, 2, 3].flatMap((n) => Array.from({ length: 100 }, () => ask(`192.0.2.${n}`)));
  await setImmediate();
  t.is(begun, 50 + 25 + 13);
  const person = ask('198.51.100.1');
  await setImmediate();
  t.is(begun, 50 + 25 + 13 + 1);
  resolve();
  await t.notThrowsAsync(Promise.all([...held, person]));
});

test('strangers of many networks wait for each other, and are not refused', async (t) => {
  const slots = createRequestSlots();
  const { promise, resolve } = Promise.withResolvers<void>();
  let begun = 0;
  const ask = (client: string) => {
    const context = { state: { client }, res: { closed: false } };
    return slots.whileHandling({ context, user: null } as unknown as OrgVisit, () => {
      begun += 1;
      return promise;
    });
  };
  const held = Array.from({ length: 20 }, () => ask('192.0.2.1'));
  await setImmediate();
  t.is(begun, 8);
  held.push(...Array.from({ length: 30 }, (_, n) => ask(`198.51.100.${n}`)));
  await setImmediate();
  t.is(begun, 25);
  resolve();
  await t.notThrowsAsync(Promise.all(held));
  t.is(begun, 50);
});

test('three people of an organization have as many slots as one, and the others have theirs', async (t) => {
  const slots = createRequestSlots();
  const { promise, resolve } = Promise.withResolvers<void>();
  const ask = (one: OrgVisit) => slots.whileHandling(one, () => promise);
  const held = Array.from({ length: 25 }, (_, n) => ask(visit('acme', `ann${n % 3}`)));
  await t.throwsAsync(ask(visit('acme', 'ben')), { message: /busy|in progress/ });
  held.push(ask(visit('other', 'ann0')), ask(visit('acme', 'olga', true)));
  resolve();
  await t.notThrowsAsync(Promise.all(held));
});
