/**
 * How many deliveries a second a destination takes under load: the best second of the last 30 to 60 seconds. A short pause
 * does not lower it, so that the mail after the pause finds as many slots as before.
 */

const spanMs = 30_000;

export function createThroughput() {
  let second = Number.NEGATIVE_INFINITY;
  let span = Number.NEGATIVE_INFINITY;
  let current = 0;
  /** The best second of this span, and of the span before. */
  let best = 0;
  let bestBefore = 0;

  function advance(now: number): void {
    const thisSecond = Math.floor(now / 1000);
    if (thisSecond === second) return;
    best = Math.max(best, current);
    current = 0;
    second = thisSecond;
    const thisSpan = Math.floor(now / spanMs);
    if (thisSpan === span) return;
    bestBefore = thisSpan === span + 1 ? best : 0;
    best = 0;
    span = thisSpan;
  }

  return {
    count(now: number): void {
      advance(now);
      current += 1;
    },
    perSecond(now: number): number {
      advance(now);
      return Math.max(bestBefore, best, current);
    },
  };
}
