/** What of a destination's limits each node has: all parts together are the whole, and never more, whatever nodes do. */
import test from 'ava';
import fc from 'fast-check';
import { createMembership, type Membership } from '../../src/queue/membership.ts';
import { part, rankOf } from '../../src/queue/share.ts';

const names = fc.uniqueArray(fc.uuid(), { minLength: 1, maxLength: 12 });

test('the parts of all ranks are the whole, and differ by one at most', (t) => {
  const given = fc.property(fc.nat(500), fc.integer({ min: 1, max: 120 }), (total, count) => {
    const parts = Array.from({ length: count }, (_, rank) => part(total, count, rank));
    t.is(
      parts.reduce((sum, one) => sum + one, 0),
      total,
    );
    t.true(parts[0]! - parts.at(-1)! <= 1);
    t.deepEqual(
      parts.toSorted((a, b) => b - a),
      parts,
      'the first have the most',
    );
  });
  fc.assert(given);
  t.pass();
});

test('at each destination every node has a rank of its own, in whatever order they are counted', (t) => {
  const given = fc.property(names, fc.domain(), (nodes, name) => {
    const ranks = nodes.map((node) => rankOf(node, nodes.toReversed(), name));
    t.deepEqual(
      ranks.toSorted((a, b) => a - b),
      [...nodes.keys()],
    );
  });
  fc.assert(given);
  t.pass();
});

test('who joins makes nobody’s part larger, and who leaves nobody’s smaller', (t) => {
  const given = fc.property(names, fc.uuid(), fc.domain(), fc.nat(40), (nodes, joiner, name, total) => {
    const all = [...nodes, joiner];
    for (const node of nodes) {
      const before = part(total, nodes.length, rankOf(node, nodes, name));
      t.true(part(total, all.length, rankOf(node, all, name)) <= before);
    }
  });
  fc.assert(given);
  t.pass();
});

test('the first are not the same at each destination', (t) => {
  const nodes = ['a', 'b', 'c', 'd'];
  const first = Array.from({ length: 400 }, (_, n) =>
    nodes.find((node) => rankOf(node, nodes, `mx${n}.invalid`) === 0),
  );
  for (const node of nodes) {
    const count = first.filter((one) => one === node).length;
    t.true(count > 60 && count < 140, `${node}: ${count} of 400`);
  }
});

interface Running {
  roster: Membership;
  /** When its beat was committed whose answer it has not read yet. */
  begunAt: number | null;
  tickedAt: number;
}

/** Nodes and the rows that they share; a step is a beat that is committed, or the reading that follows it. */
function createScene() {
  const rows = new Map<string, { node: string; members: string; at: number }>();
  const running = new Map<string, Running>();
  let now = 1_000_000;
  const shared = { 'mx.invalid': 20, 'two.invalid': 2, 'one.invalid': 1 };

  function step(node: string): void {
    const one = running.get(node);
    if (!one) return;
    if (one.begunAt === null) {
      one.begunAt = now;
      rows.set(node, { node, members: one.roster.members, at: now });
      return;
    }
    one.roster.update(
      [...rows.values()].filter((row) => row.node !== node),
      one.begunAt,
      now,
    );
    one.begunAt = null;
    one.tickedAt = now;
  }

  return {
    running,
    step,
    pass(ms: number): void {
      now += ms;
      // One that is alone is as good as never silent: it need not hold still for others.
      for (const [node, one] of running) {
        const isAlone = one.roster.others.length === 0 && now - one.tickedAt > 3000;
        if (isAlone) for (let n = 0; n < 2; n++) step(node);
      }
    },
    start(node: string): void {
      if (running.has(node)) return;
      running.set(node, { roster: createMembership(node), begunAt: null, tickedAt: now });
      step(node);
      step(node);
    },
    kill: (node: string) => running.delete(node),
    leave(node: string): void {
      if (running.delete(node)) rows.delete(node);
    },
    /** By destination: what all may have together, and what the nodes think they may. */
    sums: () =>
      Object.entries(shared).map(([name, total]) => {
        const parts = [...running.values()].map(({ roster }) => {
          const share = roster.share(name);
          return share.isTrusted(now) ? share.of(total) : 0;
        });
        return { name, total, sum: parts.reduce((sum, one) => sum + one, 0) };
      }),
  };
}

test('whatever joins, dies, stalls and comes back: never more than the whole; once it is calm, all of it', (t) => {
  const nodes = ['a', 'b', 'c', 'd'];
  const event = fc.record({
    node: fc.constantFrom(...nodes),
    ms: fc.oneof(
      { weight: 6, arbitrary: fc.nat(400) },
      { weight: 1, arbitrary: fc.integer({ min: 400, max: 4000 }) },
    ),
    what: fc.oneof(
      { weight: 40, arbitrary: fc.constant('step' as const) },
      { weight: 3, arbitrary: fc.constant('start' as const) },
      { weight: 1, arbitrary: fc.constantFrom('kill' as const, 'leave' as const) },
    ),
  });
  const given = fc.property(fc.array(event, { minLength: 50, maxLength: 400 }), (events) => {
    const scene = createScene();
    for (const { node, ms, what } of events) {
      scene.pass(ms);
      scene[what](node);
      const tooMuch = scene.sums().find(({ total, sum }) => sum > total);
      if (tooMuch) throw new Error(`too much: ${JSON.stringify(tooMuch)}`);
    }
    scene.start('a');
    for (let n = 0; n < 40; n++) {
      scene.pass(500);
      for (const node of nodes) scene.step(node);
    }
    const notAll = scene.sums().find(({ total, sum }) => sum !== total);
    if (notAll) throw new Error(`it is calm, and yet: ${JSON.stringify(notAll)}`);
  });
  fc.assert(given, { numRuns: 300 });
  t.pass();
});

test('who is new waits until the others have made room, which takes two looks of each', (t) => {
  const scene = createScene();
  const parts = () => [...scene.running.values()].map(({ roster }) => roster.share('mx.invalid').of(20));
  scene.start('a');
  t.deepEqual(parts(), [20], 'the first does not wait');
  scene.pass(1000);
  scene.start('b');
  t.deepEqual(parts(), [20, 0]);
  const look = (node: string) => {
    scene.pass(500);
    scene.step(node);
    scene.step(node);
  };
  look('a');
  t.deepEqual(parts(), [10, 0], 'room is made at once');
  look('b');
  t.deepEqual(parts(), [10, 0], 'and has not been published');
  look('a');
  look('b');
  t.deepEqual(parts(), [10, 10]);
});
