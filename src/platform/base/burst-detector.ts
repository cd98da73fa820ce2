/** Tells whether events come in a burst: the newest came less than `maxGapMs` after the one before it. */
export function createBurstDetector(maxGapMs: number, now = () => performance.now()) {
  let lastAt = Number.NEGATIVE_INFINITY;
  let gap = Number.POSITIVE_INFINITY;
  return {
    /** Call at each event. */
    note(): void {
      const at = now();
      gap = at - lastAt;
      lastAt = at;
    },
    isBurst: () => gap < maxGapMs,
  };
}
