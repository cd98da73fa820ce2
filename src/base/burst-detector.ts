/** Whether things follow each other closely: the newest came less than `withinMs` after the one before it. */
export interface BurstDetector {
  /** One has come. */
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
