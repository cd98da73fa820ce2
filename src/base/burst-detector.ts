/** Tells whether events come in a burst: the newest came less than `maxGapMs` after the one before it. */
export interface BurstDetector {
  /** Call at each event. */
  note(): void;
  isBurst(): boolean;
}

export function createBurstDetector(maxGapMs: number, now = () => performance.now()): BurstDetector {
  let lastAt = Number.NEGATIVE_INFINITY;
  let gap = Number.POSITIVE_INFINITY;
  return {
    note() {
      const at = now();
      gap = at - lastAt;
      lastAt = at;
    },
    isBurst: () => gap < maxGapMs,
  };
}
