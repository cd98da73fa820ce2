/** An organization has its share of the pages that are made at once, however many people it has. */
import test from 'ava';
import type { OrgVisit } from '#front/dashboard/page.ts';
import { createRequestSlots } from '#front/dashboard/request-slots.ts';

/** The parts of a visit that decide. */
function visit(org: string, user: string, isOperator = false): OrgVisit {
  const context = { set() {} };
  return { context, user: { id: user, isOperator }, org: { id: org } } as unknown as OrgVisit;
}

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
