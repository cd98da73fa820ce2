/**
 * Bounds concurrent posts in total and per endpoint. A failing endpoint gets one post at a time, and all failing endpoints
 * together at most half of the slots, so that hanging receivers, which hold a slot for 15 seconds, never block the others.
 */
import { CountedMap } from '#platform/base/limits/counted-map.ts';

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
  const inFlight = new CountedMap();
  let failing = 0;
  /** The endpoint served last; the next share begins after it. */
  let lastServed = '';

  return {
    /** Takes a slot; returns the function that frees it. */
    take({ id, isFailing }: DueWebhook): () => void {
      inFlight.add(id, 1);
      if (isFailing) failing += 1;
      return () => {
        inFlight.add(id, -1);
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
      let left = max - inFlight.total;
      let leftFailing = Math.floor(max / 2) - failing;
      for (const { id, isFailing } of inTurn) {
        const own = (isFailing ? 1 : perWebhook) - inFlight.of(id);
        const limit = Math.min(own, left, isFailing ? leftFailing : left);
        if (limit <= 0) continue;
        picks.push({ webhookId: id, limit });
        left -= limit;
        if (isFailing) leftFailing -= limit;
        lastServed = id;
      }
      return picks;
    },
    isFull: () => inFlight.total >= max,
  };
}
