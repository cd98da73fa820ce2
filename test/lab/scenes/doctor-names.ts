/** A test of one check of `postern doctor`: one thing is broken, and one finding says so. */
import test, { type ExecutionContext } from 'ava';
import type { Finding } from '#operate/doctor/finding.ts';
import { type DoctorWorld, startDoctorWorld } from './doctor-world.ts';

export type Change = Parameters<DoctorWorld['changed']>[0];

interface Expected {
  check: string;
  subject: string;
  verdict: Finding['verdict'];
  found: RegExp;
  advice?: RegExp;
  records?: Finding['records'];
}

/** One thing broken, one finding changed. `wrong` may return what is to be handed over otherwise: a Change. */
export function names(
  title: string,
  wrong: (world: DoctorWorld, t: ExecutionContext) => unknown,
  expected: Expected,
) {
  test.serial(title, async (t) => {
    const world = await startDoctorWorld(t);
    const change = (await wrong(world, t)) as Change | undefined;
    const changed = await world.changed(change);
    const { found, advice, ...rest } = expected;
    t.is(changed.length, 1, JSON.stringify(changed, null, 2));
    t.like(changed[0], rest);
    t.regex(changed[0]!.found, found);
    if (advice) t.regex(changed[0]!.advice!, advice);
    if (expected.verdict !== 'skipped') t.truthy(changed[0]!.advice);
  });
}
