/**
 * How much may be posted at once: in all, and to each endpoint; to one that fails one thing at a time, and to all that
 * fail together no more than half. So a receiver that hangs holds a place for 15 seconds, and never everybody's.
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
  /** The last that was served: the next in line is served first. */
  let lastServed = '';

  return {
    /** Notes what is begun; what is returned notes that it has ended. */
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
    /** How much of each may be begun now. */
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
