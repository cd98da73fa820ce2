import test from 'ava';
import { groupCommit } from '#platform/database/engine/group-commit.ts';

/** Commits by hand: each call waits until `settle` is called with what is to become of it. */
function byHand() {
  const calls: { items: number[]; settle(error?: Error): void }[] = [];
  const commit = (items: number[]) =>
    new Promise<string[]>((resolve, reject) => {
      const settle = (error?: Error) =>
        error ? reject(error) : resolve(items.map((item) => `answer ${item}`));
      calls.push({ items, settle });
    });
  return { calls, add: groupCommit(commit) };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('an item alone is committed at once; those that come meanwhile share the next commit', async (t) => {
  const { calls, add } = byHand();
  const first = add(1);
  await turn();
  t.deepEqual(calls[0]!.items, [1]);
  const others = [add(2), add(3), add(4)];
  await turn();
  t.is(calls.length, 1, 'one commit at a time');
  calls[0]!.settle();
  t.is(await first, 'answer 1');
  await turn();
  t.deepEqual(calls[1]!.items, [2, 3, 4]);
  calls[1]!.settle();
  t.deepEqual(await Promise.all(others), ['answer 2', 'answer 3', 'answer 4']);
});

test('items of one turn of the event loop share a commit', async (t) => {
  const { calls, add } = byHand();
  const all = [add(1), add(2)];
  await turn();
  calls[0]!.settle();
  await Promise.all(all);
  t.is(calls.length, 1);
});

test('an item that cannot be committed fails alone', async (t) => {
  const add = groupCommit(async (items: number[]) => {
    if (items.includes(2)) throw new Error('poison');
    return items;
  });
  const results = await Promise.allSettled([add(1), add(2), add(3)]);
  t.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  t.is(await add(4), 4, 'and the next group is not harmed');
});

test('a group waits for items that are coming, but not longer than a commit is worth', async (t) => {
  const calls: number[][] = [];
  let coming = 2;
  const commit = async (items: number[]) => {
    calls.push(items);
    return items;
  };
  const add = groupCommit(commit, { isComing: (gathered) => coming > gathered, maxWaitMs: 60_000 });
  const first = add(1);
  await turn();
  t.deepEqual(calls, [], 'two more are made ready');
  coming = 1;
  const others = [add(2)];
  t.deepEqual(await Promise.all([first, ...others]), [1, 2]);
  t.deepEqual(calls, [[1, 2]], 'one more is not worth the time of two');

  coming = 5;
  const impatient = groupCommit(commit, { isComing: () => coming > 0, maxWaitMs: 1 });
  t.is(await impatient(3), 3, 'they do not come');
});

test('another transaction ends the wait of a group, and is told whether anybody waited', async (t) => {
  const calls: number[][] = [];
  const commit = async (items: number[]) => {
    calls.push(items);
    return items;
  };
  let end = () => false;
  const onOccasion = (given: () => boolean) => {
    end = given;
  };
  const add = groupCommit(commit, { isComing: () => true, maxWaitMs: 60_000, onOccasion });
  t.false(end(), 'nobody waits');
  const both = [add(1), add(2)];
  await turn();
  t.deepEqual(calls, []);
  t.true(end());
  t.deepEqual(await Promise.all(both), [1, 2]);
  t.deepEqual(calls, [[1, 2]]);
  t.false(end());
});
