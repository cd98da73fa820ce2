import test from 'ava';
import { manualClock } from '#lab/clock.ts';
import { createDueScanner } from '#mail/queue/due-scanner.ts';

test('a full scan during which the clock jumps by hours does not put off the next one', async (t) => {
  const clock = manualClock();
  const pages: PromiseWithResolvers<{ due: []; last: null }>[] = [];
  const scanner = createDueScanner({
    findDue: () => Promise.resolve([]),
    listBacklogs: () => {
      const page = Promise.withResolvers<{ due: []; last: null }>();
      pages.push(page);
      return page.promise;
    },
    dueAmong: () => Promise.resolve([]),
    noteBacklog: () => t.fail(),
    onError: (what) => t.fail(what),
    clock,
  });
  scanner.startIfDue(true);
  await clock.jump('8h');
  pages[0]!.resolve({ due: [], last: null });
  await clock.advance('1h');
  scanner.startIfDue(true);
  t.is(pages.length, 2);
});
