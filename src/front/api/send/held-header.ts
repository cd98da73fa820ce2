/** The header that names the pauses that hold accepted mail: one of a send, or those of a call that makes several emails. */
import type { Context } from 'koa';
import type { Accepted } from '#mail/accept/accept.ts';
import { Refusal } from '#platform/values/refusal.ts';

const heldHeader = 'X-Postern-Held';

export function nameHeld(context: Context, results: (Accepted | Refusal)[]): void {
  const held = results.flatMap((one) => (one instanceof Refusal || !one.heldBy ? [] : [one.heldBy.pauseId]));
  if (held.length === 0) return;
  const before = String(context.response.get(heldHeader) || '').split(', ');
  const ids = [...new Set([...before, ...held])].filter((id) => id !== '');
  context.set(heldHeader, ids.join(', '));
}
