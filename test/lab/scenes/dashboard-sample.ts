/** The types of a sample: a request for one route of the dashboard that succeeds if it is allowed. */
import type { Org, Scene } from './dashboard-scene.ts';

export interface Sample {
  /** Of the path, beside the organization. */
  params?: Record<string, string>;
  query?: string;
  fields?: Record<string, string | string[]>;
  /** What it acts on is named by a field, not by the path. */
  isNamedByField?: true;
  /** Where the right answer is none of 200 and 303. */
  status?: number;
}

type Visitor = Awaited<ReturnType<Scene['browserOf']>>;

/** `visitor`: whoever will send it. */
export type Sampler = (scene: Scene, org: Org, visitor: Visitor) => Sample | Promise<Sample>;
