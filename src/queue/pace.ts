/** How many a second a destination has taken lately: in the second before this one, whole seconds of the clock. */
export interface Pace {
  count(now: number): void;
  perSecond(now: number): number;
}

export function createPace(): Pace {
  let second = Number.NEGATIVE_INFINITY;
  let current = 0;
  let before = 0;

  function turn(now: number): void {
    const next = Math.floor(now / 1000);
    if (next === second) return;
    before = next === second + 1 ? current : 0;
    second = next;
    current = 0;
  }

  return {
    count(now) {
      turn(now);
      current += 1;
    },
    perSecond(now) {
      turn(now);
      return Math.max(before, current);
    },
  };
}
