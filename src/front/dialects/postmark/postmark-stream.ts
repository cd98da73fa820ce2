/** Postern has the one message stream that each of Postmark's servers has from the start. */
import { Refusal } from '#platform/values/refusal.ts';

export const stream = 'outbound';

/** Without a name it is this one. Another is not ignored: mail of a broadcast stream gets a link to unsubscribe from Postmark. */
export function checkStream(name: string | null | undefined): void {
  if (!name || name === stream) return;
  throw new Refusal(
    'BAD_REQUEST',
    `Postern has no message stream ${JSON.stringify(name.slice(0, 100))}. Leave MessageStream out, or give ${stream}.`,
  );
}
