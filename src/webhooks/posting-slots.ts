/**
 * Bounds concurrent posts in total and per endpoint. A failing endpoint gets one post at a time, and all failing endpoints
 * together at most half of the slots, so that hanging receivers, which hold a slot for 15 seconds, never block the others.
 */
export interface DueWebhook {
  id: string;
  isFailing: boolean;
}

export interface Pick {
  webhookId: string;
  limit: number;
}

const perWebhook = 16;

export function createPostingSlots(max: number) {
  const inFlight = new Map<string, number>();
  let total = 0;
  let failing = 0;
  /** The endpoint served last; the next share begins after it. */
  let lastServed = '';

  return {
    /** Takes a slot; returns the function that frees it. */
    take({ id, isFailing }: DueWebhook): () => void {
      inFlight.set(id, (inFlight.get(id) ?? 0) + 1);
      total += 1;
      if (isFailing) failing += 1;
      return () => {
        const left = inFlight.get(id)! - 1;
        if (left > 0) inFlight.set(id, left);
        else inFlight.delete(id);
        total -= 1;
        if (isFailing) failing -= 1;
      };
    },
    /** How many posts to each endpoint may start now. */
    share(due: readonly DueWebhook[]): Pick[] {
      const inTurn = [
        ...due.filter(({ id }) => id > lastServed),
        ...due.filter(({ id }) => id <= lastServed),
      ];
      const picks: Pick[] = [];
      let left = max - total;
      let leftFailing = Math.floor(max / 2) - failing;
      for (const { id, isFailing } of inTurn) {
        const own = (isFailing ? 1 : perWebhook) - (inFlight.get(id) ?? 0);
        const limit = Math.min(own, left, isFailing ? leftFailing : left);
        if (limit <= 0) continue;
        picks.push({ webhookId: id, limit });
        left -= limit;
        if (isFailing) leftFailing -= limit;
        lastServed = id;
      }
      return picks;
    },
    isFull: () => total >= max,
  };
}
