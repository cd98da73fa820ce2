/** Each node's share of a destination's limits: together they are the limit, and never more, whatever happens to the nodes. */
import test from 'ava';
import fc from 'fast-check';
import { runs } from '#lab/runs.ts';
import { NodeMembership } from '#mail/queue/cluster/membership.ts';
import { rankOf, shareOfLimit } from '#mail/queue/cluster/share-of-limit.ts';

const names = fc.uniqueArray(fc.uuid(), { minLength: 1, maxLength: 12 });

test('the parts of all ranks add up to the total and differ by at most one', (t) => {
  const property = fc.property(fc.nat(500), fc.integer({ min: 1, max: 120 }), (total, count) => {
    const parts = Array.from({ length: count }, (_, rank) => shareOfLimit(total, count, rank));
    t.is(
      parts.reduce((sum, one) => sum + one, 0),
      total,
    );
    t.true(parts[0]! - parts.at(-1)! <= 1);
    t.deepEqual(
      parts.toSorted((a, b) => b - a),
      parts,
      'the first ranks have the largest parts',
    );
  });
  fc.assert(property, { numRuns: runs(100) });
  t.pass();
});

test('each node has its own rank at a destination, in whatever order the nodes are listed', (t) => {
  const property = fc.property(names, fc.domain(), (nodes, name) => {
    const ranks = nodes.map((node) => rankOf(node, nodes.toReversed(), name));
    t.deepEqual(
      ranks.toSorted((a, b) => a - b),
      [...nodes.keys()],
    );
  });
  fc.assert(property, { numRuns: runs(100) });
  t.pass();
});

test('a node that joins makes no part larger, and a node that leaves makes none smaller', (t) => {
  const property = fc.property(names, fc.uuid(), fc.domain(), fc.nat(40), (nodes, joiner, name, total) => {
    const all = [...nodes, joiner];
    for (const node of nodes) {
      const before = shareOfLimit(total, nodes.length, rankOf(node, nodes, name));
      t.true(shareOfLimit(total, all.length, rankOf(node, all, name)) <= before);
    }
  });
  fc.assert(property, { numRuns: runs(100) });
  t.pass();
});

test('the first node is not the same at every destination', (t) => {
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
  membership: NodeMembership;
  /** When its latest heartbeat was committed, if it has not read the others' since. */
  begunAt: number | null;
  tickedAt: number;
}

/** Nodes and the rows that they share. A step is a heartbeat that is committed, or the read that follows it. */
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
      rows.set(node, { node, members: one.membership.members, at: now });
      return;
    }
    one.membership.update(
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
      // A node that is alone publishes often enough never to be silent.
      for (const [node, one] of running) {
        const isAlone = one.membership.others.length === 0 && now - one.tickedAt > 3000;
        if (isAlone) for (let n = 0; n < 2; n++) step(node);
      }
    },
    start(node: string): void {
      if (running.has(node)) return;
      running.set(node, { membership: new NodeMembership(node), begunAt: null, tickedAt: now });
      step(node);
      step(node);
    },
    kill: (node: string) => running.delete(node),
    leave(node: string): void {
      if (running.delete(node)) rows.delete(node);
    },
    /** By destination: the limit, and the sum of what the nodes take for their parts. */
    sums: () =>
      Object.entries(shared).map(([name, total]) => {
        const parts = [...running.values()].map(({ membership }) => {
          const share = membership.share(name);
          return share.isTrusted(now) ? share.of(total) : 0;
        });
        return { name, total, sum: parts.reduce((sum, one) => sum + one, 0) };
      }),
  };
}

test('whichever nodes join, die, stall and come back: never more than the limit, and all of it once nothing changes', (t) => {
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
  const property = fc.property(fc.array(event, { minLength: 50, maxLength: 400 }), (events) => {
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
    if (notAll) throw new Error(`nothing changes any more, and yet: ${JSON.stringify(notAll)}`);
  });
  fc.assert(property, { numRuns: runs(300) });
  t.pass();
});

test('a new node waits until the others have given up their part, which takes two heartbeats of each', (t) => {
  const scene = createScene();
  const parts = () =>
    [...scene.running.values()].map(({ membership }) => membership.share('mx.invalid').of(20));
  scene.start('a');
  t.deepEqual(parts(), [20], 'the first node does not wait');
  scene.pass(1000);
  scene.start('b');
  t.deepEqual(parts(), [20, 0]);
  const beat = (node: string) => {
    scene.pass(500);
    scene.step(node);
    scene.step(node);
  };
  beat('a');
  t.deepEqual(parts(), [10, 0], 'the older node gives up its part at once');
  beat('b');
  t.deepEqual(parts(), [10, 0], 'but has not published that yet');
  beat('a');
  beat('b');
  t.deepEqual(parts(), [10, 10]);
});
