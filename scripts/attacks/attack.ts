/** What an attack of scripts/attacks.ts is: a function that does the harm, and says what came of it. */
import type { Place, Scene } from './scene.ts';

export interface Attack {
  /** The number in the list of attacks; several attacks may share one. */
  item: number;
  name: string;
  /** Usual unless given. */
  place?: Place;
  /** The attack is broken off after this; 30 s unless given. */
  timeoutMs?: number;
  /** The event loop must not stand still for longer; not judged unless given. */
  maxStallMs?: number;
  run(scene: Scene): Promise<Verdict>;
}

export interface Verdict {
  /** What did not hold; empty if all did. */
  faults: string[];
  /** What was measured, in a few words. */
  figure: string;
}

/** A fault for each check that is false. */
export function verdict(figure: string, ...checks: [holds: boolean, fault: string][]): Verdict {
  return { figure, faults: checks.filter(([holds]) => !holds).map(([, fault]) => fault) };
}
