/** Whether things follow each other closely: the newest came less than `withinMs` after the one before it. */
export interface Tempo {
  /** One has come. */
  beat(): void;
  isQuick(): boolean;
}

export function createTempo(withinMs: number, now = () => performance.now()): Tempo {
  let lastAt = Number.NEGATIVE_INFINITY;
  let gap = Number.POSITIVE_INFINITY;
  return {
    beat() {
      const at = now();
      gap = at - lastAt;
      lastAt = at;
    },
    isQuick: () => gap < withinMs,
  };
}
