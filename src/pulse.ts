/** Whether things come often: the newest came less than `withinMs` after the one before it. */
export interface Pulse {
  /** One has come. */
  beat(): void;
  isOften(): boolean;
}

export function createPulse(withinMs: number, now = () => performance.now()): Pulse {
  let lastAt = Number.NEGATIVE_INFINITY;
  let gap = Number.POSITIVE_INFINITY;
  return {
    beat() {
      const at = now();
      gap = at - lastAt;
      lastAt = at;
    },
    isOften: () => gap < withinMs,
  };
}
