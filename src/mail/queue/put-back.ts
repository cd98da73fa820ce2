/**
 * A 421 while other connections work means that we were too fast: the delivery is put back, a few times, without an attempt of
 * its own. Its recorded attempt then begins with the first connection, so that the transcript has the replies of all.
 */
import type { Attempt, Delivery } from '#platform/values/glossary.ts';

const maxTimes = 3;

export class PutBack {
  /** The attempts after which a delivery was put back, as long as it is leased. */
  readonly #earlier = new Map<string, Attempt[]>();

  /** False: it was put back often enough. */
  note({ id }: Delivery, attempt: Attempt): boolean {
    const earlier = this.#earlier.get(id) ?? [];
    if (earlier.length >= maxTimes) return false;
    this.#earlier.set(id, [...earlier, attempt]);
    return true;
  }

  /** The attempt with what came before it. */
  whole({ id }: Delivery, attempt: Attempt): Attempt {
    const earlier = this.#earlier.get(id);
    if (!earlier) return attempt;
    const { startedAt } = earlier[0]!;
    const all = [...earlier, attempt];
    const transcript = all.flatMap(({ startedAt: begun, transcript: lines }) =>
      lines.map((line) => ({ ...line, ms: line.ms + begun - startedAt })),
    );
    const tlsSessions = all.flatMap((one) => one.tlsSessions ?? []);
    return { ...attempt, startedAt, transcript, ...(tlsSessions.length > 0 && { tlsSessions }) };
  }

  /** The delivery is leased no more. */
  forget({ id }: Delivery): void {
    this.#earlier.delete(id);
  }
}
